package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"sync"
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

func TestAttempts(t *testing.T) {
	require.Equal(t, []string{"0 attempts", "1 attempt", "2 attempts"}, []string{attempts(0), attempts(1), attempts(2)})
}

// TestServerWithoutTLS: lib/pq wants TLS unless told otherwise, and the error says how.
func TestServerWithoutTLS(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			if _, err := io.ReadFull(conn, make([]byte, 8)); err == nil { // the request for TLS
				_, _ = conn.Write([]byte("N"))
			}
			_ = conn.Close()
		}
	})
	defer serving.Wait()
	defer func() { require.NoError(t, server.Close()) }()
	_, err = openPq(t.Context(), config{dsn: "postgres://me:hush@" + server.Addr().String() + "/d", schema: "s"})
	require.ErrorContains(t, err, "SSL is not enabled on the server; if that is meant to be so, add sslmode=disable")
	require.NotContains(t, err.Error(), "hush")
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
