package robust_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
)

// serverTimeouts: the role's statements may take 200 ms and its transactions may idle for 500 ms. Load goes through,
// and what the server cut short is done again.
func serverTimeouts(t *testing.T, server target) {
	anyDriver(t, func(t *testing.T, d driver) {
		at := role(t, server, "hasty_"+d.name, "statement_timeout to '200ms'", "idle_in_transaction_session_timeout to '500ms'")
		e := newEnv(t, d, server)
		s, plain := e.open(at), e.open(server)
		hasty := func(c *child) { c.At = at }
		crew := []*process{e.start(e.worker("worker-1", hasty)), e.start(e.worker("worker-2", hasty))}
		jobs := size(1000, 10_000)
		var producer sync.WaitGroup
		producer.Go(func() { enqueue(t, s, requests(t, "q", 0, jobs)) })
		// Meanwhile some statements run into the limit: somebody locks what every claim, heartbeat and ack writes.
		for range 3 {
			require.NoError(t, s.inTx(context.Background(), func(_ core.TxView, exec execFunc) error {
				err := exec(context.Background(), "lock table "+e.schema+".leases in exclusive mode")
				pause(300 * time.Millisecond)
				return err
			}))
			pause(100 * time.Millisecond)
		}
		producer.Wait()
		e.finish(jobs, time.Minute)
		hit := 0
		for _, p := range crew {
			p.stop()
			hit += len(p.text.troubles())
		}
		require.NotZero(t, hit, "nothing ran into a limit: the test proves nothing")
		require.Equal(t, counted{Jobs: jobs, Runs: jobs}, e.verify(plain, jobs))
	})
}

// statementCancelled: a statement that the server cancels is an outage, not a fault of the data, and was not done.
func statementCancelled(t *testing.T, server target) {
	ctx := context.Background()
	eachDriver(t, func(t *testing.T, d driver) {
		at := role(t, server, "cancelled_"+d.name, "statement_timeout to '100ms'", "idle_in_transaction_session_timeout to '200ms'")
		e := newEnv(t, d, server)
		s, plain := e.open(at), e.open(server)
		enqueue(t, plain, requests(t, "q", 0, 2))
		ask := core.ClaimRequest{Token: core.NewToken(), Lease: time.Hour, Wants: []core.Want{{Queue: "q", Names: []string{"work-q"}, Limit: 1}}}
		got, err := s.Claim(ctx, ask)
		require.NoError(t, err)
		held := core.Lease{ID: got.Jobs[0].ID, Ref: got.Jobs[0].Ref, Token: ask.Token}
		calls := []struct {
			what string
			call func() error
		}{
			{"enqueue", func() error { _, err := s.Enqueue(ctx, requests(t, "q", 2, 1)); return err }},
			{"claim", func() error { ask.Token = core.NewToken(); _, err := s.Claim(ctx, ask); return err }},
			{"extend", func() error { _, err := s.Extend(ctx, []core.Lease{held}, time.Hour); return err }},
			{"sweep", func() error { _, err := s.RecoverStalled(ctx, core.RecoverRequest{}); return err }},
			{"cancel", func() error { _, err := s.Cancel(ctx, held.ID); return err }},
			{"get", func() error { _, err := s.Get(ctx, held.ID); return err }},
			{"ack", func() error {
				_, err := s.Ack(ctx, []core.Ack{{Lease: held, Outcome: core.OutcomeComplete}})
				return err
			}},
		}
		require.NoError(t, plain.inTx(ctx, func(_ core.TxView, exec execFunc) error {
			for _, table := range []string{"jobs", "ready", "leases"} {
				if err := exec(ctx, "lock table "+e.schema+"."+table+" in access exclusive mode"); err != nil {
					return err
				}
			}
			for _, c := range calls {
				err := c.call()
				if !errors.Is(err, core.ErrUnavailable) {
					t.Errorf("%s: %v", c.what, err)
				}
				if _, data := errors.AsType[*core.InvalidError](err); data {
					t.Errorf("%s: a fault of the data: %v", c.what, err)
				}
			}
			return nil
		}))
		// A transaction that idles is ended by the server: an outage as well, for the application to begin anew.
		err = s.inTx(ctx, func(view core.TxView, _ execFunc) error {
			if _, err := view.Enqueue(ctx, requests(t, "q", 3, 1)); err != nil {
				return err
			}
			pause(400 * time.Millisecond)
			_, err := view.Enqueue(ctx, requests(t, "q", 4, 1))
			require.True(t, errors.Is(err, core.ErrUnavailable), "%v", err)
			return err
		})
		require.Error(t, err)
		require.Equal(t, 2, e.jobs(), "nothing was done")
		for _, c := range calls {
			// A busy machine may take longer than the limit once more.
			e.soon(c.what, 10*time.Second, func() bool {
				err := c.call()
				return err == nil || !errors.Is(err, core.ErrUnavailable) && assert.NoError(t, err)
			})
		}
		e.sound()
	})
}
