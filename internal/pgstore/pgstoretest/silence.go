package pgstoretest

import (
	"context"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/faults"
	"github.com/stintmq/stint/journal"
)

// Silence is what the tests of journals on a server that falls silent need of a driver.
type Silence struct {
	DSN     string // a URL
	Connect func(dsn string) (*DB, error)
	// Patience has calls of a store give up after d.
	Patience func(s Store, d time.Duration)
	// Deaf: the library's own statements don't end with their context.
	Deaf bool
}

// muted is a journal whose server says nothing any more once it is told to.
type muted struct {
	*Log
	silence func()
	apply   func(context.Context, *Tx) error // what its projection does
}

// JournalSilence: the network swallows everything. What the journal sends gives up as calls of the queue do, at whatever
// moment of a transaction that is, and says what is known of it; a batch ends for code of the application's too.
func (k *Kit) JournalSilence(t *testing.T, s Silence) {
	for _, c := range []struct {
		name string
		want error
		run  func(m *muted) error
	}{
		{"begin", core.ErrUnavailable, func(m *muted) error {
			m.silence()
			return m.J.InTx(m.ctx, func(context.Context, *Tx) error { return nil })
		}},
		{"statement", core.ErrUnavailable, func(m *muted) error {
			return m.J.InTx(m.ctx, func(ctx context.Context, tx *Tx) error {
				m.silence()
				_, err := m.J.Record(ctx, tx, Accounts.Key("a"), journal.AnyVersion, Deposited.New(1))
				return err
			})
		}},
		{"enqueue", core.ErrUnavailable, func(m *muted) error {
			return m.J.InTx(m.ctx, func(ctx context.Context, tx *Tx) error {
				m.silence()
				_, err := m.Store.Jobs().WithTx(tx).Enqueue(ctx, []core.EnqueueRequest{Request("job")})
				return err
			})
		}},
		{"commit", core.ErrUnknown, func(m *muted) error {
			return m.J.InTx(m.ctx, func(context.Context, *Tx) error {
				m.silence()
				return nil
			})
		}},
		{"batch", core.ErrUnavailable, func(m *muted) error {
			m.apply = func(context.Context, *Tx) error { m.silence(); return nil }
			_, err := m.J.CatchUp(m.ctx)
			return err
		}},
		{"function", context.DeadlineExceeded, func(m *muted) error {
			m.apply = func(ctx context.Context, tx *Tx) error {
				m.silence()
				if s.Deaf { // it could not return from a statement
					<-ctx.Done()
					return ctx.Err()
				}
				_, err := tx.X.Exec(ctx, "select 1")
				return err
			}
			_, err := m.J.CatchUp(m.ctx)
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := k.muted(t, s)
			began := time.Now()
			require.ErrorIs(t, c.run(m), c.want)
			require.Less(t, time.Since(began), 12*time.Second)
		})
	}
}

func (k *Kit) muted(t testing.TB, s Silence) *muted {
	u, err := url.Parse(s.DSN)
	require.NoError(t, err)
	proxy, err := faults.NewProxy(u.Host, faults.PostgresReady)
	require.NoError(t, err)
	t.Cleanup(proxy.Close)
	u.Host = proxy.Addr()
	db, err := s.Connect(u.String())
	require.NoError(t, err)
	store, err := db.New(k.Schema(t))
	require.NoError(t, err)
	s.Patience(store, 300*time.Millisecond)
	t.Cleanup(func() {
		proxy.Close() // before the connections, which ask the server when they close
		require.NoError(t, store.Close())
		require.NoError(t, db.Backend.Close())
		_ = db.Close() // it may say how they broke
	})
	own := New(nil)
	own.db = db
	m := &muted{Log: own.LogOf(t, store), silence: proxy.Blackhole}
	m.ctx = context.Background() // one without a deadline is what this is about
	p := journal.NewProjection[*Tx]("p", journal.ProjectionOptions{Timeout: time.Second})
	journal.Apply(p, Deposited, func(ctx context.Context, tx *Tx, _ journal.Event[int]) error { return m.apply(ctx, tx) })
	require.NoError(t, m.J.Project(p))
	m.Add("a") // the schema is known, a connection is open
	return m
}
