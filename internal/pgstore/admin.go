package pgstore

import (
	"context"

	"github.com/stintmq/stint/core"
)

// Retry implements core.Admin.
func (s *Store) Retry(ctx context.Context, id string) error {
	return s.plain(ctx, Shared, true, func(ctx context.Context, sn *session) error { return sn.Retry(ctx, id) })
}

// Cancel implements core.Admin.
func (s *Store) Cancel(ctx context.Context, id string) (core.State, error) {
	return verb(ctx, s, func(ctx context.Context, sn *session) (core.State, error) {
		return sn.Cancel(ctx, id)
	})
}

// CancelByKey implements core.Admin.
func (s *Store) CancelByKey(ctx context.Context, name, key string) (bool, error) {
	return verb(ctx, s, func(ctx context.Context, sn *session) (bool, error) {
		return sn.CancelByKey(ctx, name, key)
	})
}

// Promote implements core.Admin.
func (s *Store) Promote(ctx context.Context, id string) error {
	return s.plain(ctx, Shared, true, func(ctx context.Context, sn *session) error { return sn.Promote(ctx, id) })
}

// Remove implements core.Admin.
func (s *Store) Remove(ctx context.Context, id string) (bool, error) {
	return verb(ctx, s, func(ctx context.Context, sn *session) (bool, error) {
		return sn.Remove(ctx, id)
	})
}

// Pause implements core.Admin.
func (s *Store) Pause(ctx context.Context, queue string) error {
	return s.plain(ctx, Shared, true, func(ctx context.Context, sn *session) error { return sn.Pause(ctx, queue) })
}

// Resume implements core.Admin.
func (s *Store) Resume(ctx context.Context, queue string) error {
	return s.plain(ctx, Shared, true, func(ctx context.Context, sn *session) error { return sn.Resume(ctx, queue) })
}

// Paused implements core.Admin.
func (s *Store) Paused(ctx context.Context) ([]string, error) {
	return read(ctx, s, func(ctx context.Context, sn *session) ([]string, error) {
		return sn.Paused(ctx)
	})
}
