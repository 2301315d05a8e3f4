package pgsql

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

var bufferHits = regexp.MustCompile(`shared hit=(\d+)`)

// pages is how many pages a claim of jobs named job looks at, marks or not.
func pages(t *testing.T, conn *pgx.Conn, s *Schema, marks string) int {
	t.Helper()
	ctx := context.Background()
	for _, sql := range []string{"set plan_cache_mode = force_generic_plan", "prepare it as " + s.text(sqlClaim)} {
		_, err := conn.Exec(ctx, sql)
		require.NoError(t, err)
	}
	r, err := conn.Query(ctx, `explain (analyze, buffers, costs off, timing off, summary off) execute it
		(null, 'q', '{job}', 10, false, 16777216, 60000000, '00000000-0000-0000-0000-000000000001', 'w', `+marks+`, null, true)`,
		pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
	lines, err := pgx.CollectRows(r, pgx.RowTo[string])
	require.NoError(t, err)
	_, err = conn.Exec(ctx, "deallocate it")
	require.NoError(t, err)
	for _, line := range lines { // the first is that of the whole
		if m := bufferHits.FindStringSubmatch(line); m != nil {
			n, err := strconv.Atoi(m[1])
			require.NoError(t, err)
			return n
		}
	}
	t.Fatal("no buffers in", lines)
	return 0
}

// TestForeignNames: 20,000 delayed jobs of names that nobody here handles cost a claim nothing, and as many waiting ones
// nothing once marks are behind them.
func TestForeignNames(t *testing.T) {
	conn, s := migrated(t)
	ctx := context.Background()
	name := quoteName(s.name)
	_, err := conn.Exec(ctx, fmt.Sprintf(`insert into %[1]s.lanes values ('q', 0);
		insert into %[1]s.delayed (seq, run_at, fence, bytes, attempts, stalls, snoozes, runs, priority, queue, name)
			select n, now() + n * interval '1 hour', 0, 0, 0, 0, 0, 0, 0, 'q', 'other' from generate_series(1, 20000) n;`, name))
	require.NoError(t, err)
	const few, noMarks = 60, `'{}', '{}'`
	pages(t, conn, s, noMarks) // the first look tidies up
	require.Less(t, pages(t, conn, s, noMarks), few)

	// The broken form: an index without the name.
	_, err = conn.Exec(ctx, fmt.Sprintf(`drop index %[1]s.delayed_due; create index delayed_due on %[1]s.delayed (queue, run_at, seq)`, name))
	require.NoError(t, err)
	require.Greater(t, pages(t, conn, s, noMarks), 2*few)

	_, err = conn.Exec(ctx, fmt.Sprintf(`truncate %[1]s.delayed;
		insert into %[1]s.ready (seq, place, run_at, fence, bytes, attempts, stalls, snoozes, runs, priority, queue, name)
			select n, n, now(), 0, 0, 0, 0, 0, 0, 0, 'q', 'other' from generate_series(1, 20000) n`, name))
	require.NoError(t, err)
	require.Less(t, pages(t, conn, s, `'{0}', '{20001}'`), few)
	require.Greater(t, pages(t, conn, s, noMarks), few, "without marks it reads all of them")
}
