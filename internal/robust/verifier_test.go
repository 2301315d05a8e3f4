package robust_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// TestVerifierSees: each broken promise that verify looks for is found where there is one.
func TestVerifierSees(t *testing.T) {
	t.Parallel()
	e := sharedEnv(t, drivers()[0])
	s := e.open(e.at)
	enqueue(t, s, requests(t, "q", 0, 1))
	w := e.work(s, []string{"q"})
	e.finish(1, 10*time.Second)
	w.stop()
	e.verify(s, 1)

	const second = `insert into %[1]s.runs (ref, token, fence, started) select ref, gen_random_uuid(), fence + 1, `
	frauds := map[string]string{
		"a job that never ran":                                `delete from %[1]s.runs`,
		"a job completed by a run that did not end":           `update %[1]s.runs set ended = null`,
		"a job completed under a lease that no run had":       `update %[1]s.runs set token = gen_random_uuid()`,
		"two leases at once":                                  `insert into %[1]s.leases (ref, token, until, at, gone) select ref, gen_random_uuid(), until, at + interval '1 us', false from %[1]s.leases where not gone`,
		"a lease that was taken back before it had run out":   `insert into %[2]s.runs (seq, finished_at, token, number, answered, outcome) select ref, at, token, 99, 2, 'stalled' from %[1]s.leases where gone`,
		"a second run while the first had its lease":          second + `started from %[1]s.runs`,
		"a second run after a lease that did not run out":     second + `ended + interval '1 s' from %[1]s.runs`,
		"a second run while the first had its lease (no end)": `update %[1]s.runs set ended = null;` + second + `started + interval '1 us' from %[1]s.runs`,
	}
	ctx := context.Background()
	for _, what := range slices.Sorted(maps.Keys(frauds)) {
		t.Run(what, func(t *testing.T) {
			tx, err := e.pool.Begin(ctx)
			require.NoError(t, err)
			defer func() { require.NoError(t, tx.Rollback(ctx)) }()
			_, err = tx.Exec(ctx, fmt.Sprintf(frauds[what], e.notes, e.schema), pgx.QueryExecModeSimpleProtocol)
			require.NoError(t, err)
			query, ok := e.broken()[what]
			if !ok {
				query = e.broken()["a second run while the first had its lease"]
			}
			var ref int64
			require.NoError(t, tx.QueryRow(ctx, query).Scan(&ref), "not seen")
		})
	}
	for what := range e.broken() {
		require.Contains(t, frauds, what, "no fraud shows that it is seen")
	}
}
