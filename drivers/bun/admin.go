package bunstore

import (
	"context"

	"github.com/stintmq/stint/core"
)

// Retry implements core.Admin.
func (s *lite) Retry(ctx context.Context, id string) error {
	return s.write(ctx, func(ctx context.Context, sn *session) error { return sn.Retry(ctx, id) })
}

// Cancel implements core.Admin.
func (s *lite) Cancel(ctx context.Context, id string) (core.State, error) {
	return result(ctx, s.write, func(ctx context.Context, sn *session) (core.State, error) {
		return sn.Cancel(ctx, id)
	})
}

// CancelByKey implements core.Admin.
func (s *lite) CancelByKey(ctx context.Context, name, key string) (bool, error) {
	return result(ctx, s.write, func(ctx context.Context, sn *session) (bool, error) {
		return sn.CancelByKey(ctx, name, key)
	})
}

// Promote implements core.Admin.
func (s *lite) Promote(ctx context.Context, id string) error {
	return s.write(ctx, func(ctx context.Context, sn *session) error { return sn.Promote(ctx, id) })
}

// Remove implements core.Admin.
func (s *lite) Remove(ctx context.Context, id string) (bool, error) {
	return result(ctx, s.write, func(ctx context.Context, sn *session) (bool, error) {
		return sn.Remove(ctx, id)
	})
}

// Pause implements core.Admin.
func (s *lite) Pause(ctx context.Context, queue string) error {
	return s.write(ctx, func(ctx context.Context, sn *session) error { return sn.Pause(ctx, queue) })
}

// Resume implements core.Admin.
func (s *lite) Resume(ctx context.Context, queue string) error {
	return s.write(ctx, func(ctx context.Context, sn *session) error { return sn.Resume(ctx, queue) })
}

// Paused implements core.Admin.
func (s *lite) Paused(ctx context.Context) ([]string, error) {
	return result(ctx, s.read, func(ctx context.Context, sn *session) ([]string, error) {
		return sn.Paused(ctx)
	})
}
