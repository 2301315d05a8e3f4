package pgsql

import (
	"context"
	"sync"

	"github.com/stintmq/stint/core"
)

// Lanes knows which (queue, priority) pairs the database knows. A claim asks lane by lane, so a pair is there before
// its first job is, by a transaction of its own: one of the caller's would hold up everybody else's first job.
// It is safe for concurrent use.
type Lanes struct {
	mu    sync.Mutex
	known map[laneKey]bool
}

type laneKey struct {
	queue    string
	priority int16
}

const sqlLanes = `insert into {}.lanes (queue, priority)
	select * from unnest($1::text[], $2::smallint[]) as u (queue, priority) order by queue, priority on conflict do nothing`

// Ensure sees to it that the lanes of reqs are there. plain lends a session outside of any transaction.
func (l *Lanes) Ensure(ctx context.Context, reqs []core.EnqueueRequest, plain func(context.Context, func(context.Context, *Session) error) error) error {
	missing := l.missing(reqs)
	if len(missing) == 0 {
		return nil
	}
	queues, priorities := make([]string, 0, len(missing)), make([]int16, 0, len(missing))
	for lane := range missing {
		queues, priorities = append(queues, lane.queue), append(priorities, lane.priority)
	}
	err := plain(ctx, func(ctx context.Context, s *Session) error {
		_, err := s.x.Exec(ctx, sqlLanes, queues, priorities)
		return err
	})
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil {
		l.known = make(map[laneKey]bool)
	}
	for lane := range missing {
		l.known[lane] = true
	}
	return nil
}

// Forget has Ensure look again for the lanes of reqs.
func (l *Lanes) Forget(reqs []core.EnqueueRequest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range reqs {
		delete(l.known, laneKey{reqs[i].Queue, int16(reqs[i].Priority)})
	}
}

func (l *Lanes) missing(reqs []core.EnqueueRequest) map[laneKey]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	var missing map[laneKey]bool
	for i := range reqs {
		lane := laneKey{reqs[i].Queue, int16(reqs[i].Priority)}
		if l.known[lane] || reqs[i].Priority < core.MinPriority || reqs[i].Priority > core.MaxPriority ||
			core.ValidateQueue("Queue", lane.queue) != nil {
			continue // there already, or refused anyway
		}
		if missing == nil {
			missing = make(map[laneKey]bool)
		}
		missing[lane] = true
	}
	return missing
}
