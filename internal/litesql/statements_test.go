package litesql

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/sqlexec"
)

// TestStatementsAreKept: what workers and producers run is in Statements, and all of it is SQL.
func TestStatementsAreKept(t *testing.T) {
	db := database(t)
	seen := map[string]int{}
	everything(t, db, func(x sqlexec.Executor) sqlexec.Executor { return recorder{x, seen} })
	for _, inv := range invariants {
		delete(seen, inv.query)
	}
	for text := range seen {
		require.Contains(t, append(Statements(), looksForExpired...), text)
	}
	for _, text := range slices.Concat(Statements(), Reading()) {
		plan(t, db, text)
	}
}

// looksForExpired is what a reader does before anything is pruned, once a minute: not often enough to be kept. It reads
// the totals of all lanes.
var looksForExpired = []string{sqlEnds, sqlNewestEnds}

// scansAllowed are the ways in which a plan may read all of something, because that something is small: a JSON
// argument, the one counter, the paused queues, or the leases in flight.
var scansAllowed = []string{"SCAN e ", "SCAN json_each", "SCAN stint_counter", "SCAN stint_paused",
	"SCAN w USING INDEX stint_work_active", "SCAN stint_work USING INDEX stint_work_active", "SCAN CONSTANT ROW", fmt.Sprintf("SCAN %d-ROW VALUES", bulkRows)}

// TestPlansSearch: no statement of a worker reads a table or an index of jobs from end to end, before and after
// somebody analysed tables with next to nothing in them.
func TestPlansSearch(t *testing.T) {
	db := database(t)
	search := func() {
		t.Helper()
		for _, text := range append(Statements(), looksForExpired...) {
			for _, step := range plan(t, db, text) {
				if lanes := step == "SCAN stint_lanes" && text == sqlEnds; strings.HasPrefix(step, "SCAN ") && !lanes {
					require.True(t, slices.ContainsFunc(scansAllowed, func(ok string) bool { return strings.HasPrefix(step+" ", ok) }),
						"%s\n%.300s", step, text)
				}
				require.NotContains(t, step, "AUTOMATIC", text)
			}
		}
	}
	search()
	within(t, db, func(x sqlexec.Executor) {
		_, err := NewSession(x, noon, core.Limits{}).Enqueue(context.Background(), []core.EnqueueRequest{request("", "a")})
		require.NoError(t, err)
	})
	_, err := db.Exec("analyze")
	require.NoError(t, err)
	require.Contains(t, plan(t, db, sqlStanding), "SCAN w",
		"SQLite no longer falls for it: forgetStatistics may go")
	within(t, db, func(x sqlexec.Executor) { require.NoError(t, Migrate(context.Background(), x)) })
	search()
}

func plan(t *testing.T, db *sql.DB, text string) (steps []string) {
	t.Helper()
	rows, err := db.Query("explain query plan "+text, make([]any, params(text))...)
	require.NoError(t, err, text)
	defer func() { require.NoError(t, rows.Close()) }()
	for rows.Next() {
		var id, parent, unused int
		var detail string
		require.NoError(t, rows.Scan(&id, &parent, &unused, &detail))
		steps = append(steps, detail)
	}
	require.NoError(t, rows.Err())
	return steps
}

// params counts a text's placeholders; those with a number are counted too often, which does no harm.
func params(text string) int { return strings.Count(text, "?") }
