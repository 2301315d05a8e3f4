package pgstore

import (
	"context"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/pgsql"
)

// PutSchedule implements core.Scheduler.
func (s *Store) PutSchedule(ctx context.Context, c core.ScheduleSpec, first time.Time) error {
	if err := c.Validate(s.opts.Limits); err != nil {
		return err
	}
	if err := s.ensureLanes(ctx, []core.EnqueueRequest{c.Request}); err != nil {
		return err
	}
	return s.plain(ctx, Shared, true, func(ctx context.Context, sn *session) error { return sn.PutSchedule(ctx, c, first) })
}

// RemoveSchedule implements core.Scheduler.
func (s *Store) RemoveSchedule(ctx context.Context, key string) (bool, error) {
	return verb(ctx, s, func(ctx context.Context, sn *session) (bool, error) {
		return sn.RemoveSchedule(ctx, key)
	})
}

// Schedules implements core.Scheduler.
func (s *Store) Schedules(ctx context.Context, q core.ScheduleQuery) ([]core.ScheduleRecord, error) {
	return read(ctx, s, func(ctx context.Context, sn *session) ([]core.ScheduleRecord, error) {
		return sn.Schedules(ctx, q)
	})
}

// DueSchedules implements core.Scheduler.
func (s *Store) DueSchedules(ctx context.Context, limit int) (core.DueSchedules, error) {
	return read(ctx, s, func(ctx context.Context, sn *session) (core.DueSchedules, error) {
		return sn.DueSchedules(ctx, limit)
	})
}

// TickSchedule implements core.Scheduler: one transaction. Others are told by its commit.
func (s *Store) TickSchedule(ctx context.Context, t core.Tick) (bool, error) {
	notify := pgsql.Notify{Channel: s.channel, Origin: s.origin}
	got, err := value(func(do op) error { return s.atomic(ctx, do) }, func(ctx context.Context, sn *session) (pgsql.Ticked, error) {
		return sn.TickSchedule(ctx, t, notify)
	})
	if err == nil && len(got.Laneless) > 0 {
		err = s.remakeLanes(ctx, got.Laneless)
	}
	return got.Done && err == nil, err
}
