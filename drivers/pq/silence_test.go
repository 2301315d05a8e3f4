package pqstore_test

import (
	"context"
	"errors"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	pqstore "github.com/stintmq/stint/drivers/pq"
	"github.com/stintmq/stint/internal/faults"
	"github.com/stintmq/stint/internal/pgstore/pgstoretest"
)

// TestSilentServer: the network swallows everything, which pq would wait for until the kernel gives up. Calls end
// soon after their deadlines and say what is known of them, Close ends, and nothing is left running (goleak) once
// the connections are gone.
func TestSilentServer(t *testing.T) {
	u, err := url.Parse(dsn(t, "", ""))
	require.NoError(t, err)
	proxy, err := faults.NewProxy(u.Host, faults.PostgresReady)
	require.NoError(t, err)
	t.Cleanup(proxy.Close)
	u.Host = proxy.Addr()
	db := database(t, u.String())
	t.Cleanup(proxy.Close) // before db, whose connections ask the server when they close
	s, err := pqstore.New(db, pqstore.Options{DSN: u.String(), Schema: kit.Schema(t)})
	require.NoError(t, err)
	pgstoretest.Enqueue(t, s, pgstoretest.Request("job"))
	held := pgstoretest.Take(t, s, 1)

	proxy.Blackhole()
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	var calls sync.WaitGroup
	for name, call := range map[string]struct {
		want error
		do   func() error
	}{
		"extend": {core.ErrUnknown, func() error { _, err := s.Extend(ctx, held, time.Minute); return err }},
		"ack": {core.ErrUnknown, func() error {
			_, err := s.Ack(ctx, []core.Ack{{Lease: held[0], Outcome: core.OutcomeComplete}})
			return err
		}},
		"counts":  {core.ErrUnavailable, func() error { _, err := s.Counts(ctx, ""); return err }},
		"explain": {core.ErrUnavailable, func() error { _, err := s.Explain(ctx, held[0].ID); return err }},
		"get":     {core.ErrUnavailable, func() error { _, err := s.Get(ctx, held[0].ID); return err }},
	} {
		calls.Go(func() {
			if err := call.do(); !errors.Is(err, call.want) {
				t.Errorf("%s: %v, want %v", name, err, call.want)
			}
		})
	}
	calls.Wait()
	require.Less(t, time.Since(began), 6*time.Second)
	require.NoError(t, s.Close())
	require.Less(t, time.Since(began), 20*time.Second)
}

// TestSilentJournal: nor does it hold a transaction of the journal's (J7).
func TestSilentJournal(t *testing.T) {
	kit.JournalSilence(t, pgstoretest.Silence{
		DSN: dsn(t, "", ""), Connect: connect, Deaf: true,
		Patience: func(s pgstoretest.Store, d time.Duration) { pqstore.SetPatience(s.(*pqstore.Store), d) },
	})
}
