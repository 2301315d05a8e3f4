package postgres

import (
	"context"
	"fmt"
	"os"
	"strings"
)

// forget empties the server's statistics of statements.
func (s *subject) forget(ctx context.Context) error {
	if !s.cfg.Statements {
		return nil
	}
	_, err := s.meter.conn.Exec(ctx, "create extension if not exists pg_stat_statements; select pg_stat_statements_reset()")
	return err
}

// statements prints what the server did since, for n jobs.
func (s *subject) statements(ctx context.Context, n int) error {
	if !s.cfg.Statements {
		return nil
	}
	rows, err := s.meter.conn.Query(ctx, `select calls, rows, total_exec_time, mean_exec_time, wal_bytes::float8, shared_blks_hit, left(regexp_replace(query, '\s+', ' ', 'g'), 90)
		from pg_stat_statements where query not like '%pg_stat%' order by total_exec_time desc limit 12`)
	if err != nil {
		return err
	}
	defer rows.Close()
	var b strings.Builder
	fmt.Fprintf(&b, "%s, statements of a drain of %d jobs:\n%10s %10s %12s %10s %10s %8s %10s\n", s.name, n,
		"calls", "per 100", "rows/call", "ms/call", "µs/job", "WAL/job", "blocks/job")
	for rows.Next() {
		var calls, got, hit int64
		var total, mean, wal float64
		var query string
		if err := rows.Scan(&calls, &got, &total, &mean, &wal, &hit, &query); err != nil {
			return err
		}
		jobs := float64(n)
		fmt.Fprintf(&b, "%10d %10.2f %12.1f %10.3f %10.2f %8.0f %10.1f  %s\n", calls, float64(calls)*100/jobs, float64(got)/float64(calls),
			mean, total*1000/jobs, wal/jobs, float64(hit)/jobs, query)
	}
	_, _ = os.Stderr.WriteString(b.String())
	return rows.Err()
}
