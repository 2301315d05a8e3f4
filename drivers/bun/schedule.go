package bunstore

import (
	"context"
	"time"

	"github.com/stintmq/stint/core"
)

// PutSchedule implements core.Scheduler.
func (s *lite) PutSchedule(ctx context.Context, c core.ScheduleSpec, first time.Time) error {
	return s.write(ctx, func(ctx context.Context, sn *session) error { return sn.PutSchedule(ctx, c, first) })
}

// RemoveSchedule implements core.Scheduler.
func (s *lite) RemoveSchedule(ctx context.Context, key string) (bool, error) {
	return result(ctx, s.write, func(ctx context.Context, sn *session) (bool, error) {
		return sn.RemoveSchedule(ctx, key)
	})
}

// Schedules implements core.Scheduler.
func (s *lite) Schedules(ctx context.Context, q core.ScheduleQuery) ([]core.ScheduleRecord, error) {
	return result(ctx, s.read, func(ctx context.Context, sn *session) ([]core.ScheduleRecord, error) {
		return sn.Schedules(ctx, q)
	})
}

// DueSchedules implements core.Scheduler.
func (s *lite) DueSchedules(ctx context.Context, limit int) (core.DueSchedules, error) {
	return result(ctx, s.read, func(ctx context.Context, sn *session) (core.DueSchedules, error) {
		return sn.DueSchedules(ctx, limit)
	})
}

// TickSchedule implements core.Scheduler.
func (s *lite) TickSchedule(ctx context.Context, t core.Tick) (bool, error) {
	return result(ctx, s.write, func(ctx context.Context, sn *session) (bool, error) {
		return sn.TickSchedule(ctx, t)
	})
}
