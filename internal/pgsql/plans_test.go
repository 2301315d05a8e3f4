package pgsql

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/internal/pgtest"
	"github.com/stintmq/stint/internal/sqlexec"
)

// onConn lends a pgx connection.
type onConn struct{ *pgx.Conn }

func (c onConn) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	tag, err := c.Conn.Exec(ctx, query, args...)
	return tag.RowsAffected(), err
}

func (c onConn) Query(ctx context.Context, query string, args ...any) (sqlexec.Rows, error) {
	r, err := c.Conn.Query(ctx, query, args...)
	return pgxRows{r}, err
}

type pgxRows struct{ pgx.Rows }

func (r pgxRows) Close() error {
	r.Rows.Close()
	return r.Err()
}

// migrated returns a connection and a schema with tables.
func migrated(t testing.TB) (*pgx.Conn, *Schema) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, pgtest.DSN(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close(ctx)) })
	name := pgtest.Schema(t, func(ctx context.Context, sql string) error {
		_, err := conn.Exec(ctx, sql)
		return err
	})
	s := NewSchema(name)
	require.NoError(t, pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		return s.Migrate(ctx, onConn{conn}, func(ctx context.Context, sql string) error {
			return conn.PgConn().Exec(ctx, sql).Close()
		})
	}))
	return conn, s
}

var placeholder = regexp.MustCompile(`\$(\d+)`)

// plan is the plan that a prepared statement gets for good, whatever its arguments.
func plan(t *testing.T, conn *pgx.Conn, text string) []string {
	t.Helper()
	ctx := context.Background()
	n := 0
	for _, m := range placeholder.FindAllStringSubmatch(text, -1) {
		i, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		n = max(n, i)
	}
	for _, sql := range []string{"set plan_cache_mode = force_generic_plan", "prepare it as " + text} {
		_, err := conn.Exec(ctx, sql)
		require.NoError(t, err, text)
	}
	args := ""
	if n > 0 {
		args = "(" + strings.TrimSuffix(strings.Repeat("null, ", n), ", ") + ")"
	}
	r, err := conn.Query(ctx, "explain (costs off) execute it"+args, pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
	lines, err := pgx.CollectRows(r, pgx.RowTo[string])
	require.NoError(t, err, text)
	_, err = conn.Exec(ctx, "deallocate it")
	require.NoError(t, err)
	return lines
}

// small are the tables that a plan may read from end to end: what is in flight, what stays small, the sequence.
var small = regexp.MustCompile(`Seq Scan on (leases|lanes|paused|tallies|sweeps|numbers)\b`)

// searches reports whether a plan reads no large table from end to end, and hashes or sorts none.
func searches(lines []string) bool {
	for _, line := range lines {
		if strings.Contains(line, "Seq Scan") && !small.MatchString(line) ||
			strings.Contains(line, "Hash Join") || strings.Contains(line, "Merge Join") {
			return false
		}
	}
	return true
}

// TestPlansSearch: no statement of a worker or a producer reads a large table from end to end, sorts or hashes one,
// whether it was prepared when the tables were new, or when vacuum and analyze had found them empty.
func TestPlansSearch(t *testing.T) {
	conn, s := migrated(t)
	search := func(when string) {
		for _, text := range working() {
			lines := plan(t, conn, s.text(text))
			if !searches(lines) {
				t.Errorf("%s:\n%s\n%.300s", when, strings.Join(lines, "\n"), text)
			}
		}
	}
	search("new tables")
	_, err := conn.Exec(context.Background(), fmt.Sprintf(`vacuum analyze %[1]s.jobs, %[1]s.ready, %[1]s.delayed, %[1]s.leases,
		%[1]s.finished, %[1]s.runs, %[1]s.tallies, %[1]s.lanes, %[1]s.paused`, quoteName(s.name)))
	require.NoError(t, err)
	search("analysed empty tables")
}
