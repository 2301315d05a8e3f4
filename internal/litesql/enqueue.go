package litesql

import (
	"context"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/keyplan"
)

// The insertions of a new job.
var (
	newJobs = into("stint_jobs", "seq", "id", "lane", "enqueued_at", "dedupe_key", "priority", "payload", "metadata",
		"max_attempts", "max_stalls", "timeout", "backoff_kind", "backoff_base", "backoff_max", "backoff_factor", "backoff_exact",
		"keep", "trace")
	newWork = into("stint_work", "seq", "lane", "rank", "state", "place", "run_at")
)

// Enqueue implements core.Enqueuer (Q10 to Q12).
func (s *Session) Enqueue(ctx context.Context, reqs []core.EnqueueRequest) ([]core.EnqueueResult, error) {
	results := make([]core.EnqueueResult, len(reqs))
	left := make([]int, 0, len(reqs))
	for i := range reqs {
		if err := reqs[i].Validate(s.limits); err != nil {
			results[i].Err = err
			continue
		}
		left = append(left, i)
	}
	for w := (keyplan.Window{}); len(left) > 0; {
		part := w.Of(left)
		n, err := s.enqueueFirst(ctx, reqs, part, results)
		if err != nil {
			return nil, err
		}
		w.Planned(n, len(part))
		left = left[n:]
	}
	return results, s.flush(ctx)
}

// enqueueFirst does the items that one plan is for, the first ones, and returns how many.
func (s *Session) enqueueFirst(ctx context.Context, reqs []core.EnqueueRequest, left []int, results []core.EnqueueResult) (int, error) {
	plan, err := s.plan(ctx, reqs, left)
	if err != nil {
		return 0, err
	}
	for i := range plan.Touches {
		if err := s.touch(ctx, &plan.Touches[i], reqs); err != nil {
			return 0, err
		}
	}
	ids, err := s.insert(ctx, reqs, plan)
	if err != nil {
		return 0, err
	}
	for _, i := range left[:plan.Planned] {
		item := plan.Items[i]
		results[i] = item.Result
		if item.Insert > 0 && item.Result.Err == nil {
			results[i].ID = ids[item.Insert-1]
		}
	}
	return plan.Planned, nil
}

// plan works out what becomes of valid items.
func (s *Session) plan(ctx context.Context, reqs []core.EnqueueRequest, at []int) (*keyplan.Plan, error) {
	var ids []string
	for _, i := range at {
		if id := reqs[i].ResolvedID(); id != "" {
			ids = append(ids, id)
		}
	}
	held, err := s.holders(ctx, ids)
	if err != nil {
		return nil, err
	}
	names := make(map[string]string, len(held))
	for id, h := range held {
		names[id] = h.name
	}
	entries, err := s.entries(ctx, reqs, at)
	if err != nil {
		return nil, err
	}
	return keyplan.Make(reqs, at, s.moment(), entries, names), nil
}

// insert inserts the planned jobs and returns their ids.
func (s *Session) insert(ctx context.Context, reqs []core.EnqueueRequest, plan *keyplan.Plan) ([]string, error) {
	if len(plan.Inserts) == 0 {
		return nil, nil
	}
	seq, err := s.take(ctx, len(plan.Inserts))
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(plan.Inserts))
	lanes := make(map[laneKey]int64)
	var jobs, work, keys rows
	for n, in := range plan.Inserts {
		req := plan.Request(reqs, in)
		lane := laneKey{req.Queue, req.Name}
		number, ok := lanes[lane]
		if !ok {
			if number, err = s.laneOf(ctx, lane); err != nil {
				return nil, err
			}
			lanes[lane] = number
		}
		id := req.ResolvedID()
		if ids[n] = id; id == "" {
			ids[n] = ownID(seq)
		}
		if err := s.addJob(&jobs, &work, &req, seq, number, in.Key.Key); err != nil {
			return nil, err
		}
		if in.Key != (keyplan.Key{}) {
			keys.add(0, in.Key.Name, in.Key.Key, seq, s.windowEnd(in.TTL), text(id))
		}
		s.wake(req.Queue)
		seq++
	}
	for _, step := range []struct {
		in   insertion
		rows *rows
	}{{newJobs, &jobs}, {newWork, &work}, {newKeys, &keys}} {
		if err := step.in.exec(ctx, s.x, step.rows); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

func (s *Session) addJob(jobs, work *rows, req *core.EnqueueRequest, seq, lane int64, key string) error {
	content, err := contentOf(req)
	if err != nil {
		return err
	}
	jobs.add(len(req.Payload), append([]any{seq, text(req.ResolvedID()), lane, s.now, text(key)}, content...)...)
	state, runAt := s.due(req)
	work.add(0, seq, lane, -req.Priority, state, seq, runAt)
	return nil
}

// contentOf is what a replace changes of a job, in the order of newJobs.
func contentOf(req *core.EnqueueRequest) ([]any, error) {
	metadata, err := doc(req.Metadata, len(req.Metadata) == 0)
	if err != nil {
		return nil, err
	}
	keep, err := doc(req.Keep, req.Keep == core.Keep{})
	if err != nil {
		return nil, err
	}
	trace, err := doc(req.Trace, req.Trace == nil)
	if err != nil {
		return nil, err
	}
	b := req.Backoff
	return []any{req.Priority, bytes(req.Payload), metadata, req.MaxAttempts, req.MaxStalls, int64(req.Timeout),
		b.Kind, int64(b.Base), int64(b.Max), b.Factor, b.NoJitter, keep, trace}, nil
}

// due is when a job is to run, and how it stands until then.
func (s *Session) due(req *core.EnqueueRequest) (state, runAt int64) {
	runAt = s.now + micros(req.Delay)
	if !req.RunAt.IsZero() {
		runAt = max(core.Micros(req.RunAt).UnixMicro(), s.now)
	}
	if runAt > s.now {
		return delayed, runAt
	}
	return waiting, runAt
}
