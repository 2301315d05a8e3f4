package pgsql

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
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

// explained is the plan that a prepared statement gets for good, whatever its arguments.
func explained(t *testing.T, conn *pgx.Conn, text string) node {
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
	r, err := conn.Query(ctx, "explain (format json) execute it"+args, pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
	raw, err := pgx.CollectExactlyOneRow(r, pgx.RowTo[string])
	require.NoError(t, err, text)
	_, err = conn.Exec(ctx, "deallocate it")
	require.NoError(t, err)
	var plans []struct{ Plan node }
	require.NoError(t, json.Unmarshal([]byte(raw), &plans), raw)
	return plans[0].Plan
}

// node is a step of a plan.
type node struct {
	Type   string `json:"Node Type"`
	Table  string `json:"Relation Name"`
	Index  string `json:"Index Name"`
	Cond   string `json:"Index Cond"`
	Filter string
	Plans  []node
}

// small are the tables that a plan may read from end to end: what is in flight, what stays small, the sequence.
var small = map[string]bool{"leases": true, "lanes": true, "paused": true, "tallies": true, "sweeps": true, "schedules": true,
	"cursors": true, "schema_version": true, "numbers": true}

// leads are the first columns of a schema's indexes.
func leads(t *testing.T, conn *pgx.Conn, s *Schema) map[string]string {
	t.Helper()
	r, err := conn.Query(context.Background(), `select c.relname, a.attname from pg_index i join pg_class c on c.oid = i.indexrelid
		join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
		join pg_namespace n on n.oid = c.relnamespace where n.nspname = $1`, s.name)
	require.NoError(t, err)
	var index, column string
	columns := map[string]string{}
	_, err = pgx.ForEachRow(r, []any{&index, &column}, func() error {
		columns[index] = column
		return nil
	})
	require.NoError(t, err)
	require.NotEmpty(t, columns)
	return columns
}

// walks are the steps of a plan that read a table that grows from end to end, or may: an index is searched by its first
// column, and by another it is read as a whole.
func (n node) walks(leads map[string]string) (found []string) {
	return n.walksUnder("", leads)
}

func (n node) walksUnder(parent string, leads map[string]string) (found []string) {
	ours := leads[n.Index] != ""
	switch {
	case parent == "Limit" && n.Cond == "" && n.Filter == "" && ours: // the first in an order
	case n.Type == "Seq Scan" && !small[n.Table] && !strings.HasPrefix(n.Table, "pg_"):
		found = append(found, n.Type+" "+n.Table)
	case ours && !small[n.Table] && !regexp.MustCompile(`(^|[^a-z_])`+leads[n.Index]+`($|[^a-z_])`).MatchString(n.Cond):
		found = append(found, fmt.Sprintf("%s %s (%s)", n.Type, n.Index, n.Cond))
	}
	for _, p := range n.Plans {
		found = append(found, p.walksUnder(n.Type, leads)...)
	}
	return found
}

// uses reports whether a plan reads a table or an index.
func (n node) uses(name string) bool {
	return n.Table == name || n.Index == name || slices.ContainsFunc(n.Plans, func(p node) bool { return p.uses(name) })
}

// rows puts n rows into each table that grows, all of them in one queue and of one name.
func rows(t *testing.T, conn *pgx.Conn, s *Schema, from, to int) {
	t.Helper()
	for _, sql := range []string{
		`insert into {}.jobs (seq, enqueued_at, run_at, max_attempts, max_stalls, priority, queue, name, id)
			select n, now(), now(), 1, 0, 0, 'q', 'job', 'id' || n`,
		`insert into {}.ready (seq, place, run_at, fence, bytes, attempts, stalls, snoozes, runs, priority, queue, name)
			select n, n, now(), 0, 0, 0, 0, 0, 0, 0, 'q', 'job'`,
		`insert into {}.delayed (seq, run_at, fence, bytes, attempts, stalls, snoozes, runs, priority, queue, name)
			select n, now(), 0, 0, 0, 0, 0, 0, 0, 'q', 'job'`,
		`insert into {}.leases (seq, place, run_at, fence, until, claimed_at, token, bytes, attempts, stalls, snoozes, runs, priority,
			queue, name, worker) select n, n, now(), 0, now(), now(), gen_random_uuid(), 0, 0, 0, 0, 0, 0, 'q', 'job', ''`,
		`insert into {}.runs (seq, finished_at, number, answered, outcome) select n, now(), 1, 1, ''`,
		`insert into {}.finished (seq, finished_at, run_at, fence, attempts, stalls, snoozes, runs, state, queue, name, outcome)
			select n, now(), now(), 0, 0, 0, 0, 0, 5, 'q', 'job', ''`,
		`insert into {}.dedupe (seq, turn, was, name, key) select n, n, 0, 'job', n::text`,
		`insert into {}.events (version, at, causation, schema, kind, entity, type, correlation, meta, payload)
			select 1, now(), 0, 1, 'k', n::text, 't', '', '', ''`,
		`insert into {}.entities (version, kind, id) select 1, 'k', n::text`,
		`insert into {}.notes (space, key, value) select 's', n::text, ''`,
	} {
		_, err := conn.Exec(context.Background(), s.text(sql)+fmt.Sprintf(" from generate_series(%d, %d) n", from, to))
		require.NoError(t, err, sql)
	}
}

// TestPlansSearch: no statement but those that are asked for all there is reads a large table from end to end, or an index
// that it does not search, whatever was known of the tables when it was planned: which plan a statement has, and keeps, is
// not to depend on when the planner looked last.
func TestPlansSearch(t *testing.T) {
	const many = 20_000
	conn, s := migrated(t)
	columns := leads(t, conn, s)
	ctx := context.Background()
	exec := func(sql string) {
		_, err := conn.Exec(ctx, s.text(sql))
		require.NoError(t, err, sql)
	}
	search := func(when string) {
		for _, text := range working() {
			if walks := explained(t, conn, s.text(text)).walks(columns); len(walks) > 0 {
				t.Errorf("%s: %s\n%.300s", when, strings.Join(walks, ", "), text)
			}
		}
	}
	const tables = `{}.jobs, {}.ready, {}.delayed, {}.leases, {}.finished, {}.runs, {}.tallies, {}.lanes, {}.paused, {}.dedupe,
		{}.events, {}.entities, {}.notes, {}.cursors, {}.schedules`
	for table := range strings.SplitSeq(tables, ",") { // only what is done here is known
		exec(`alter table ` + table + ` set (autovacuum_enabled = off)`)
	}
	search("new tables")
	exec(`analyze ` + tables)
	search("analysed before they were vacuumed")
	exec(`vacuum analyze ` + tables)
	search("vacuumed and analysed when empty")
	rows(t, conn, s, 1, many)
	search("filled since they were empty")
	exec(`truncate ` + tables)
	require.NoError(t, s.seed(ctx, s.In(onConn{conn})))
	exec(`vacuum analyze ` + tables)
	rows(t, conn, s, 1, 1)
	exec(`analyze ` + tables)
	search("analysed with a row")
	rows(t, conn, s, 2, many)
	search("filled since they had a row")
	exec(`analyze ` + tables)
	search("analysed when filled")
}
