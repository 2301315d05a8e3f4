package main

import (
	"bytes"
	"context"
	"net/url"
	"os"
	"os/exec"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/stintmq/stint/internal/pgtest"
)

const childEnv = "POSTGRES_EXAMPLE_TEST_CHILD"

// TestMain makes the test binary the program itself when a test starts it as a child.
func TestMain(m *testing.M) {
	if os.Getenv(childEnv) == "" {
		goleak.VerifyTestMain(m)
		return
	}
	main()
}

// dsn is the test database's; lib/pq asks for TLS unless told otherwise.
func dsn(t *testing.T) string {
	t.Helper()
	u, err := url.Parse(pgtest.DSN(t))
	require.NoError(t, err, "a URL")
	q := u.Query()
	if q.Get("sslmode") == "" {
		q.Set("sslmode", "disable")
	}
	u.RawQuery = q.Encode()
	return u.String()
}

func TestThreeShops(t *testing.T) {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, pgtest.DSN(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close(ctx)) })
	schema := pgtest.Schema(t, func(ctx context.Context, sql string) error { _, err := conn.Exec(ctx, sql); return err })
	count := func(query string) (n int) {
		t.Helper()
		require.NoError(t, conn.QueryRow(ctx, in(schema, query)).Scan(&n))
		return n
	}
	cfg := config{dsn: dsn(t), schema: schema, orders: 7}
	for round := 1; round <= 2; round++ { // it may be run again on what it left
		var out bytes.Buffer
		require.NoError(t, run(t.Context(), cfg, &out), out.String())
		for _, line := range []string{
			"pgx took 7 orders; one more was declined and rolled back, and its job with it\n",
			"pq  took 7 orders; one more was declined", "bun took 7 orders; one more was declined",
			"all 21 orders are shipped\n", "the last job to end was ship-order:", "after 1 attempt on worker",
		} {
			require.Contains(t, out.String(), line)
		}
		require.NotContains(t, out.String(), conn.Config().Password)

		orders := 21 * round
		require.Equal(t, orders, count("select count(*) from {}.orders"))
		require.Equal(t, orders, count("select count(*) from {}.orders where shipped_by is not null"))
		require.Equal(t, orders, count("select count(*) from {}.job_status where state = 'completed' and runs = 1"))
		require.Equal(t, orders, count("select count(*) from {}.job_status"), "no job of a declined order")
		require.Equal(t, 3, count("select count(distinct shipped_by) from {}.orders"))
	}
	require.Positive(t, count("select count(*) from {}.orders where placed_by <> shipped_by"))
}

func TestCommandLine(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"no database", nil, 2, "docker run"},
		{"few orders", []string{"-dsn", "postgres://me:hush@h/d", "-orders", "2"}, 2, "at least 3"},
		{"no DSN", []string{"-dsn", "postgres://me:hush@h:none/d"}, 1, "not one that Postgres takes"},
		{"nobody there", []string{"-dsn", "postgres://me:hush@127.0.0.1:1/d"}, 1, "connect"},
	} {
		t.Run(c.name, func(t *testing.T) {
			exe, err := os.Executable()
			require.NoError(t, err)
			cmd := exec.CommandContext(t.Context(), exe, c.args...)
			cmd.Env = append(os.Environ(), childEnv+"=1", pgtest.EnvDSN+"=")
			out, _ := cmd.CombinedOutput() // the exit code says it
			require.Equal(t, c.code, cmd.ProcessState.ExitCode(), "%s", out)
			require.Contains(t, string(out), c.says)
			require.NotContains(t, string(out), "hush")
		})
	}
}
