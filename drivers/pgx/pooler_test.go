package pgxstore_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	pgxstore "github.com/stintmq/stint/drivers/pgx"
	"github.com/stintmq/stint/internal/pgstore/pgstoretest"
	"github.com/stintmq/stint/internal/pgtest"
)

// TestPooler: through a PgBouncer that lends connections for one transaction each. Nobody can listen there: a store
// polls, or listens at the server itself.
func TestPooler(t *testing.T) {
	server := pgtest.Start(t)
	bouncer := server.Bouncer(t, "transaction")
	direct, err := pgx.ParseConfig(server.DSN())
	require.NoError(t, err)
	through := func(opts pgxstore.Options, cases ...string) func(*testing.T) {
		return func(t *testing.T) {
			k := pgstoretest.ForTest(t, func(testing.TB) (*pgstoretest.DB, error) {
				return connectTo(bouncer, pgx.QueryExecModeExec, opts)
			})
			if opts.PollOnly {
				k.Encoding(t)
			}
			for _, name := range cases {
				t.Run(name, func(t *testing.T) { k.Case(t, name) })
			}
		}
	}
	t.Run("poll only", through(pgxstore.Options{PollOnly: true}, "MigrateAtOnce", "ContendedID", "HeldRowHoldsNobodyUp", "Worker",
		"JournalHoles", "JournalOwnEvents", "JournalUnderLoad"))
	t.Run("listening at the server", through(pgxstore.Options{Listen: direct}, "ChannelHeals", "CloseTells", "Worker"))
	t.Run("listening in vain", func(t *testing.T) { listensInVain(t, bouncer) })
}

// listensInVain: a store that was not told of the pooler finds out, says so once, and polls: work of another process
// starts, at the latest when it does.
func listensInVain(t *testing.T, bouncer string) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	cfg, err := pgxpool.ParseConfig(bouncer)
	require.NoError(t, err)
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	require.NoError(t, err)
	defer pool.Close()
	require.NoError(t, pgxstore.Migrate(ctx, pool, "in_vain"))
	var log lines
	open := func() *pgxstore.Store {
		s, err := pgxstore.New(pool, pgxstore.Options{Schema: "in_vain", Logger: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(t, err)
		return s
	}
	s, other := open(), open()
	defer func() { require.NoError(t, s.Close()); require.NoError(t, other.Close()) }()

	job := core.NewTask[int]("job")
	w, err := core.NewWorker(s, core.WorkerOptions{Poll: 50 * time.Millisecond})
	require.NoError(t, err)
	ran := make(chan int)
	job.Handle(w, func(_ context.Context, n int) error { ran <- n; return nil })
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	require.Eventually(t, func() bool { return strings.Contains(log.text(), "hears nothing") }, 20*time.Second, 10*time.Millisecond)
	for n := range 5 {
		_, err := job.Enqueue(ctx, other, n)
		require.NoError(t, err)
		require.Equal(t, n, <-ran)
	}
	require.Equal(t, 1, strings.Count(log.text(), "level=WARN"), log.text())
	stop()
	require.NoError(t, <-done)
}

// lines is a log for concurrent use.
type lines struct {
	mu  sync.Mutex
	all strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}
