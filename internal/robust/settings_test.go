package robust_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/internal/pgtest"
)

// role makes a user with settings of its own, as an administrator does with alter role.
func role(t *testing.T, server target, name string, settings ...string) target {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, server.dsn())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(ctx)) }()
	statements := []string{fmt.Sprintf("create role %s login superuser password 'secret'", name)}
	for _, s := range settings {
		statements = append(statements, fmt.Sprintf("alter role %s set %s", name, s))
	}
	for _, s := range statements {
		_, err := conn.Exec(ctx, s)
		require.NoError(t, err, s)
	}
	return server.as(name, "secret")
}

// TestSettings: what administrators set for a role, on a server whose roles are the test's.
func TestSettings(t *testing.T) {
	t.Parallel()
	server := targetOf(t, pgtest.Start(t).DSN())
	for name, test := range map[string]func(*testing.T, target){
		"default isolation": defaultIsolation, "server timeouts": serverTimeouts, "statement cancelled": statementCancelled,
		"odd": oddSettings, "encodings": encodings, "not durable": notDurable,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, server)
		})
	}
}

// defaultIsolation: another isolation level is the default. The store's own statements cope with what that brings,
// and nobody sees an error.
func defaultIsolation(t *testing.T, server target) {
	for _, level := range []string{"serializable", "repeatable read"} {
		t.Run(level, func(t *testing.T) {
			anyDriver(t, func(t *testing.T, d driver) {
				at := role(t, server, "iso_"+strings.ReplaceAll(level, " ", "_")+"_"+d.name,
					"default_transaction_isolation to '"+level+"'")
				e := newEnv(t, d, server)
				s := e.open(at)
				jobs := size(600, 9000)
				strict := func(c *child) { c.At, c.Work, c.Lease = at, 5*time.Millisecond, 6*time.Second }
				crew := []*process{e.start(e.worker("worker-1", strict)), e.start(e.worker("worker-2", strict)), e.start(e.worker("worker-3", strict))}
				var producers sync.WaitGroup
				const parts = 3
				for i := range parts {
					reqs := requests(t, "q", i*jobs/parts, jobs/parts)
					producers.Go(func() {
						for len(reqs) > 0 {
							n := min(len(reqs), 7)
							if _, err := s.Enqueue(context.Background(), reqs[:n]); err != nil {
								t.Error(err)
								return
							}
							reqs = reqs[n:]
						}
					})
				}
				producers.Wait()
				e.finish(jobs, time.Minute)
				for _, p := range crew {
					p.stop()
					require.Empty(t, p.text.troubles(), "%s", p.id)
				}
				require.Equal(t, counted{Jobs: jobs, Runs: jobs}, e.verify(e.open(server), jobs))
			})
		})
	}
}
