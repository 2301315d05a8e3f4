package pgsql

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
)

// fill makes finished jobs of three queues and a name, a second apart, the last one now, and n few of another name.
func fill(t *testing.T, conn *pgx.Conn, s *Schema, n int) {
	t.Helper()
	ctx := context.Background()
	for _, sql := range []string{
		`alter table {}.finished set (autovacuum_enabled = off)`, `alter table {}.jobs set (autovacuum_enabled = off)`,
		fmt.Sprintf(`insert into {}.jobs (seq, enqueued_at, run_at, max_attempts, max_stalls, priority, queue, name)
			select n, now(), now(), 1, 0, 0, 'q' || n %% 3, 'job' from generate_series(1, %d) n`, n),
		fmt.Sprintf(`insert into {}.finished (seq, finished_at, run_at, fence, attempts, stalls, snoozes, runs, state, queue, name, outcome)
			select n, now() - (%[1]d - n) * interval '1 second', now(), 1, 1, 0, 0, 1, 5, 'q' || n %% 3, 'job', 'complete'
			from generate_series(1, %[1]d) n`, n),
		`insert into {}.tallies select queue, name, count(*), 0, 0 from {}.finished group by queue, name`,
		`select setval({numbers}, (select max(seq) from {}.jobs))`,
	} {
		_, err := conn.Exec(ctx, s.text(sql))
		require.NoError(t, err)
	}
}

// prune prunes in a transaction.
func prune(t *testing.T, conn *pgx.Conn, s *Schema, req core.PruneRequest, limit int, from Pruned) (n int, to Pruned) {
	t.Helper()
	require.NoError(t, pgx.BeginFunc(context.Background(), conn, func(tx pgx.Tx) (err error) {
		n, to, err = NewSession(s.In(onConn{conn}), nil, core.Limits{}).Whole().Prune(context.Background(), s, req, limit, from)
		return err
	}))
	return n, to
}

func numberAt(t *testing.T, conn *pgx.Conn, sql string, args ...any) (n int64) {
	t.Helper()
	require.NoError(t, conn.QueryRow(context.Background(), sql, args...).Scan(&n))
	return n
}

// TestPrunePlans: what prunes 200,000 finished jobs walks indexes, also by statistics of a day when there were none.
func TestPrunePlans(t *testing.T) {
	conn, s := migrated(t)
	_, err := conn.Exec(context.Background(), s.text(`analyze {}.finished, {}.jobs, {}.runs, {}.tallies`))
	require.NoError(t, err)
	fill(t, conn, s, 200_000)
	for _, text := range []string{sqlEnds, sqlBeyond, sqlPrune} {
		plan := explained(t, conn, s.text(text))
		require.True(t, plan.uses("finished_history"), text)
		require.Empty(t, plan.walks(leads(t, conn, s)), text)
	}
}

// TestPrunePassesTheDead: while a transaction that is older than all that was deleted holds up its clearing away, each
// batch begins where the last one got to.
func TestPrunePassesTheDead(t *testing.T) {
	const jobs, batch = 12_000, 500
	conn, s := migrated(t)
	ctx := context.Background()
	fill(t, conn, s, jobs)
	old, err := pgx.ConnectConfig(ctx, conn.Config())
	require.NoError(t, err)
	defer func() { require.NoError(t, old.Close(ctx)) }()
	tx, err := old.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	require.NoError(t, err)
	numberAt(t, old, s.text("select count(*) from {}.tallies")) // takes its snapshot

	read := func() int64 { // entries of the index
		return numberAt(t, conn, `select idx_tup_read from pg_stat_user_indexes where schemaname = $1 and indexrelname = 'finished_history'`, s.name)
	}
	req := core.PruneRequest{Default: core.Keep{Completed: core.KeepRule{Age: 100 * time.Second, Count: jobs}}}
	total, from := 0, Pruned{}
	for {
		n, to := prune(t, conn, s, req, batch, from)
		total, from = total+n, to
		if n < batch {
			break
		}
	}
	require.InDelta(t, jobs-100, total, 10)
	require.NoError(t, tx.Rollback(ctx))
	require.Eventually(t, func() bool { return read() >= int64(total) }, 10*time.Second, 50*time.Millisecond)
	require.Less(t, read(), int64(5*jobs), "entries read for %d jobs in batches of %d", total, batch)
	require.Equal(t, int64(jobs-total), numberAt(t, conn, s.text(`select sum(completed)::bigint from {}.tallies`)))
	require.Equal(t, int64(jobs-total), numberAt(t, conn, s.text(`select count(*) from {}.jobs`)))
}
