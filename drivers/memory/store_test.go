package memstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
)

func TestNewRefusesBadLimits(t *testing.T) {
	require.PanicsWithError(t, core.Limits{Payload: -1}.Validate().Error(), func() {
		memstore.New(memstore.Options{Limits: core.Limits{Payload: -1}})
	})
}

// After Close, and with a context that has ended, every method says that it surely did nothing.
func TestRefusals(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	closed := memstore.New(memstore.Options{})
	require.NoError(t, closed.Close())
	require.NoError(t, closed.Close())
	open, _ := newStore(t)

	for name, c := range map[string]struct {
		store *memstore.Store
		ctx   context.Context
	}{
		"closed": {closed, t.Context()},
		"ended":  {open, ended},
	} {
		for method, call := range everyMethod(c.store) {
			t.Run(name+"/"+method, func(t *testing.T) {
				err := call(c.ctx)
				require.ErrorIs(t, err, core.ErrUnavailable)
				require.Equal(t, name == "closed", errors.Is(err, core.ErrClosed))
			})
		}
	}
	require.ErrorIs(t, closed.Begin().Commit(), core.ErrClosed)
	require.ErrorIs(t, closed.Begin().Rollback(), core.ErrClosed)
}

func everyMethod(s *memstore.Store) map[string]func(context.Context) error {
	view := s.WithTx(s.Begin())
	lease := core.Lease{ID: "x", Token: core.NewToken()}
	return map[string]func(context.Context) error{
		"Enqueue": func(ctx context.Context) error { _, err := s.Enqueue(ctx, nil); return err },
		"Claim": func(ctx context.Context) error {
			_, err := s.Claim(ctx, core.ClaimRequest{Token: lease.Token})
			return err
		},
		"Extend":      func(ctx context.Context) error { _, err := s.Extend(ctx, nil, 0); return err },
		"Ack":         func(ctx context.Context) error { _, err := s.Ack(ctx, nil); return err },
		"Recover":     func(ctx context.Context) error { _, err := s.RecoverStalled(ctx, core.RecoverRequest{}); return err },
		"Get":         func(ctx context.Context) error { _, err := s.Get(ctx, "x"); return err },
		"Attempts":    func(ctx context.Context) error { _, err := s.Attempts(ctx, "x"); return err },
		"List":        func(ctx context.Context) error { _, err := s.List(ctx, core.Query{}); return err },
		"Counts":      func(ctx context.Context) error { _, err := s.Counts(ctx, ""); return err },
		"Stranded":    func(ctx context.Context) error { _, err := s.Stranded(ctx, nil); return err },
		"Explain":     func(ctx context.Context) error { _, err := s.Explain(ctx, "x"); return err },
		"Retry":       func(ctx context.Context) error { return s.Retry(ctx, "x") },
		"Cancel":      func(ctx context.Context) error { _, err := s.Cancel(ctx, "x"); return err },
		"Promote":     func(ctx context.Context) error { return s.Promote(ctx, "x") },
		"Remove":      func(ctx context.Context) error { _, err := s.Remove(ctx, "x"); return err },
		"Pause":       func(ctx context.Context) error { return s.Pause(ctx, "q") },
		"Resume":      func(ctx context.Context) error { return s.Resume(ctx, "q") },
		"Paused":      func(ctx context.Context) error { _, err := s.Paused(ctx); return err },
		"tx.Enqueue":  func(ctx context.Context) error { _, err := view.Enqueue(ctx, nil); return err },
		"tx.Complete": func(ctx context.Context) error { return view.Complete(ctx, lease, nil) },
		"Tx.Complete": func(ctx context.Context) error { return memstore.Tx[int](s).WithTx(0).Complete(ctx, lease, nil) },
	}
}

// Nothing that went in or came out is shared with the store (Q13).
func TestNothingIsShared(t *testing.T) {
	s, _ := newStore(t)
	r := request("work")
	r.Payload = []byte("payload")
	r.Metadata = map[string]string{"k": "v"}
	r.Trace = &core.Trace{Parent: "p"}
	enqueue(t, s, r)
	spoil := func(rec core.Record) {
		clear(rec.Payload)
		clear(rec.Metadata)
		clear(rec.Result)
		rec.Trace.Parent = ""
		if rec.Failure != nil {
			rec.Failure.Message = ""
		}
	}
	spoil(core.Record{Payload: r.Payload, Metadata: r.Metadata, Trace: r.Trace})
	got, token := claim(t, s, 1, "work")
	spoil(got.Jobs[0])
	failure := &core.Failure{Message: "m"}
	l := core.Lease{ID: got.Jobs[0].ID, Token: token}
	_, err := s.Ack(t.Context(), []core.Ack{{Lease: l, Outcome: core.OutcomeFail, Failure: failure}})
	require.NoError(t, err)
	failure.Message = ""
	for range 2 {
		rec, err := s.Get(t.Context(), l.ID)
		require.NoError(t, err)
		require.Equal(t, "payload", string(rec.Payload))
		require.Equal(t, map[string]string{"k": "v"}, rec.Metadata)
		require.Equal(t, "p", rec.Trace.Parent)
		require.Equal(t, "m", rec.Failure.Message)
		spoil(rec)
		ledger, err := s.Attempts(t.Context(), l.ID)
		require.NoError(t, err)
		require.Equal(t, "m", ledger[0].Failure.Message)
		ledger[0].Failure.Message = ""
	}
}

// A delay that leads out of the years that times may have is refused, and nothing else of its batch (Q13).
func TestDelayPastTheLastYear(t *testing.T) {
	c := &clock{now: time.Date(9999, 12, 1, 0, 0, 0, 0, time.UTC)}
	s := memstore.New(memstore.Options{Clock: c})
	r := request("work")
	r.Delay = 365 * 24 * time.Hour
	res, err := s.Enqueue(t.Context(), []core.EnqueueRequest{r, request("work")})
	require.NoError(t, err)
	var invalid *core.InvalidError
	require.ErrorAs(t, res[0].Err, &invalid)
	require.Equal(t, "Delay", invalid.Field)
	require.NoError(t, res[1].Err)
}
