package litesql

import (
	"context"

	"github.com/stintmq/stint/core"
)

// The insertions of a new job.
var (
	newJobs = into("stint_jobs", "seq", "id", "lane", "priority", "payload", "metadata", "max_attempts", "max_stalls",
		"timeout", "backoff_kind", "backoff_base", "backoff_max", "backoff_factor", "backoff_exact",
		"keep", "trace", "enqueued_at")
	newWork = into("stint_work", "seq", "lane", "rank", "state", "place", "run_at")
)

// Enqueue implements core.Enqueuer (Q10, Q11).
func (s *Session) Enqueue(ctx context.Context, reqs []core.EnqueueRequest) ([]core.EnqueueResult, error) {
	results := make([]core.EnqueueResult, len(reqs))
	fresh, err := s.admit(ctx, reqs, results)
	if err != nil || len(fresh) == 0 {
		return results, err
	}
	if err := s.insert(ctx, reqs, results, fresh); err != nil {
		return nil, err
	}
	return results, s.flush(ctx)
}

// insert makes the jobs of requests that were admitted, gives ids to those without, and notes which queues to wake.
func (s *Session) insert(ctx context.Context, reqs []core.EnqueueRequest, results []core.EnqueueResult, fresh []int) error {
	seq, err := s.take(ctx, len(fresh))
	if err != nil {
		return err
	}
	lanes := make(map[laneKey]int64)
	var jobs, work rows
	for _, i := range fresh {
		key := laneKey{reqs[i].Queue, reqs[i].Name}
		lane, ok := lanes[key]
		if !ok {
			if lane, err = s.laneOf(ctx, key); err != nil {
				return err
			}
			lanes[key] = lane
		}
		if results[i].ID == "" {
			results[i].ID = ownID(seq)
		}
		if err := s.addJob(&jobs, &work, &reqs[i], seq, lane); err != nil {
			return err
		}
		s.wake(key.queue)
		seq++
	}
	if err := newJobs.exec(ctx, s.x, &jobs); err != nil {
		return err
	}
	return newWork.exec(ctx, s.x, &work)
}

// admit answers every item that is not to be inserted, and returns the others.
func (s *Session) admit(ctx context.Context, reqs []core.EnqueueRequest, results []core.EnqueueResult) ([]int, error) {
	var ids []string
	for i, req := range reqs {
		if err := req.Validate(s.limits); err != nil {
			results[i].Err = err
			continue
		}
		if req.Dedupe != nil {
			results[i].Err = &core.UnsupportedError{Op: "Enqueue with Dedupe", Reason: "the SQLite store has no dedupe keys yet"}
			continue
		}
		if id := req.ResolvedID(); id != "" {
			ids = append(ids, id)
		}
	}
	held, err := s.holders(ctx, ids)
	if err != nil {
		return nil, err
	}
	fresh := make([]int, 0, len(reqs))
	for i, req := range reqs {
		if results[i].Err != nil {
			continue
		}
		id := req.ResolvedID()
		h, taken := held[id]
		switch {
		case id != "" && taken && h.name != req.Name:
			results[i].Err = &core.ConflictError{Name: h.name, ID: id}
		case id != "" && taken:
			results[i] = core.EnqueueResult{ID: id, Duplicate: true}
		default:
			results[i].ID = id
			fresh = append(fresh, i)
			if id != "" {
				held[id] = holder{name: req.Name}
			}
		}
	}
	return fresh, nil
}

func (s *Session) addJob(jobs, work *rows, req *core.EnqueueRequest, seq, lane int64) error {
	metadata, err := doc(req.Metadata, len(req.Metadata) == 0)
	if err != nil {
		return err
	}
	keep, err := doc(req.Keep, req.Keep == core.Keep{})
	if err != nil {
		return err
	}
	trace, err := doc(req.Trace, req.Trace == nil)
	if err != nil {
		return err
	}
	b := req.Backoff
	jobs.add(len(req.Payload),
		seq, text(req.ResolvedID()), lane, req.Priority, bytes(req.Payload), metadata, req.MaxAttempts, req.MaxStalls,
		int64(req.Timeout), b.Kind, int64(b.Base), int64(b.Max), b.Factor, b.NoJitter, keep, trace, s.now)

	state, runAt := int64(waiting), s.now
	if !req.RunAt.IsZero() {
		runAt = max(core.Micros(req.RunAt).UnixMicro(), s.now)
	} else {
		runAt += micros(req.Delay)
	}
	if runAt > s.now {
		state = delayed
	}
	work.add(0, seq, lane, -req.Priority, state, seq, runAt)
	return nil
}
