package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stintmq/stint/core"
)

const (
	bigDelayed = 1_000_000
	bigStep    = 250_000 // rows per statement
	bigSchema  = "big"
)

// big compares claims and acks in two schemas of one database: one that is empty, and one in which a million jobs are
// delayed and many more finished.
func (s *subject) big(ctx context.Context) (out sample, err error) {
	full, err := openBareIn(ctx, s.dsn, bigSchema)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, full.close()) }()
	start := time.Now()
	if err := s.fill(ctx); err != nil {
		return out, fmt.Errorf("fill: %w", err)
	}
	fmt.Fprintf(os.Stderr, "made %d rows in %v\n", bigDelayed+s.cfg.Finished, time.Since(start).Round(time.Second))
	other := *s
	other.queue = full
	// Alternating, and empty first as well as last: what the machine does meanwhile meets both.
	for range s.cfg.Rounds {
		for _, store := range []*subject{s, &other} {
			if err := store.insert(ctx, s.cfg.Jobs); err != nil {
				return out, err
			}
			p, err := store.timed(ctx, s.cfg.Jobs, func() error { return store.work(ctx, s.cfg.Jobs, nil) })
			if err != nil {
				return out, err
			}
			out.Parts = append(out.Parts, p)
		}
	}
	return out, nil
}

// fill makes the rows that a long life would have made.
func (s *subject) fill(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // nothing is left to be lost
	const job = `with n as (select nextval('` + bigSchema + `.numbers') as seq from generate_series(1, $1::int)),
		j as (insert into ` + bigSchema + `.jobs (seq, enqueued_at, run_at, max_attempts, max_stalls, priority, queue, name, payload)
			select seq, now(), now(), 10, 0, 0, $2::text, 'noop', $3::bytea from n)
		`
	const isDelayed = job + `insert into ` + bigSchema + `.delayed (seq, run_at, fence, bytes, attempts, stalls, snoozes, runs, priority, queue, name)
		select seq, now() + interval '1 day' + seq * interval '1 ms', 0, 20, 0, 0, 0, 0, 0, $2::text, 'noop' from n`
	const isFinished = job + `insert into ` + bigSchema + `.finished (seq, finished_at, run_at, started_at, fence, token, attempts, stalls,
			snoozes, runs, state, queue, name, outcome, asked, worker)
		select seq, now() + seq * interval '1 us', now(), now(), 1, '01234567-89ab-cdef-0123-456789abcdef', 1, 0, 0, 1, 5, $2::text, 'noop',
			'complete', 'complete', 'bare' from n`
	for statement, rows := range map[string]int{isDelayed: bigDelayed, isFinished: s.cfg.Finished} {
		for ; rows > 0; rows -= bigStep {
			if _, err := conn.Exec(ctx, statement, min(rows, bigStep), core.DefaultQueue, []byte(text)); err != nil {
				return err
			}
		}
	}
	_, err = conn.Exec(ctx, "checkpoint")
	return err
}

func bigTable(rows []row, cfg Config) string {
	var empty, full, emptyCPU, fullCPU []float64
	for _, r := range rows {
		for i := 0; i+1 < len(r.Parts); i += 2 {
			empty, emptyCPU = append(empty, r.Parts[i].Rate), append(emptyCPU, r.Parts[i].cpu())
			full, fullCPU = append(full, r.Parts[i+1].Rate), append(fullCPU, r.Parts[i+1].cpu())
		}
	}
	if len(empty) == 0 {
		return ""
	}
	ratio := middle(full) / middle(empty)
	var b strings.Builder
	b.WriteString("| store | claim and ack/s | CPU µs/job | to the empty one | at least 0.90 |\n|---|--:|--:|--:|---|\n")
	fmt.Fprintf(&b, "| empty | %.0f | %.1f | | |\n", middle(empty), middle(emptyCPU))
	fmt.Fprintf(&b, "| %d delayed, %d finished | %.0f | %.1f | %.2f, CPU %.2f | %s |\n", bigDelayed, cfg.Finished, middle(full), middle(fullCPU),
		ratio, middle(fullCPU)/middle(emptyCPU), mark(ratio >= 0.9))
	return b.String()
}
