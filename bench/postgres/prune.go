package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stintmq/stint/core"
	pgxstore "github.com/stintmq/stint/drivers/pgx"
)

const (
	pruneTurn = 5 * time.Second // with and without, in alternation
	pruneMost = 100             // turns, on a machine where they would take longer
)

// pruning is a worker that has nothing to do but to prune, as often as it may.
func pruning(store core.Store) (stop func() error, err error) {
	w, err := core.NewWorker(store, core.WorkerOptions{PruneInterval: 10 * time.Millisecond})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	return func() error {
		cancel()
		return <-done
	}, nil
}

// prune works at full rate beside many finished jobs that nobody keeps any more, and has them pruned in every second turn.
func (s *subject) prune(ctx context.Context) (out sample, err error) {
	start := time.Now()
	if err := s.fillFinished(ctx, s.cfg.Finished); err != nil {
		return out, fmt.Errorf("fill: %w", err)
	}
	fmt.Fprintf(os.Stderr, "made %d rows in %v\n", s.cfg.Finished, time.Since(start).Round(time.Second))
	store, pool, err := openStore(ctx, s.dsn, "") // with connections of its own, as another process has it
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, store.Close()); pool.Close() }()

	var ran, sent atomic.Int64
	stop, err := s.start(func() { ran.Add(1) })
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	produceCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- parallel(producers, func() error {
			for produceCtx.Err() == nil {
				if err := s.produce(produceCtx, sent.Add(production), production, &ran); err != nil {
					return err
				}
			}
			return nil
		})
	}()
	out.Parts, out.Pruned, err = s.turns(ctx, store, &ran)
	select {
	case failed := <-done:
		return out, errors.Join(err, fmt.Errorf("producers: %w", failed))
	default:
		cancel()
		<-done // the end of their context
		return out, err
	}
}

// turns alternates, without first, until nothing is left to prune.
func (s *subject) turns(ctx context.Context, store *pgxstore.Store, ran *atomic.Int64) (parts []phase, pruned []float64, err error) {
	conn, err := pgx.Connect(ctx, s.dsn)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // nothing is left to be lost
	old := func() (n int, err error) {
		err = conn.QueryRow(ctx, "select count(*) from stint.finished where finished_at < now() - interval '1 day'").Scan(&n)
		return n, err
	}
	if _, err := s.turn(ctx, ran); err != nil { // what is not warm yet is nobody's
		return nil, nil, err
	}
	left, err := old()
	for n := 0; n < pruneMost && left > 0 && err == nil; n++ {
		stop := func() error { return nil }
		if n%2 == 1 {
			if stop, err = pruning(store); err != nil {
				return nil, nil, err
			}
		}
		p, turnErr := s.turn(ctx, ran)
		if err := errors.Join(turnErr, stop()); err != nil {
			return nil, nil, err
		}
		was := left
		if left, err = old(); n%2 == 1 && left > 0 {
			parts = append(parts, p)
			pruned = append(pruned, float64(was-left)/pruneTurn.Seconds())
			fmt.Fprintf(os.Stderr, "%d left, %.0f jobs/s without and %.0f with\n", left, parts[len(parts)-2].Rate, p.Rate)
		} else if n%2 == 0 {
			parts = append(parts, p)
		}
	}
	return parts, pruned, err
}

// turn measures for a while.
func (s *subject) turn(ctx context.Context, ran *atomic.Int64) (phase, error) {
	from, err := s.meter.read(ctx)
	if err != nil {
		return phase{}, err
	}
	before := ran.Load()
	select {
	case <-time.After(pruneTurn):
	case <-ctx.Done():
		return phase{}, ctx.Err()
	}
	return s.meter.since(ctx, from, int(max(ran.Load()-before, 1)))
}

// fillFinished makes jobs that finished a month ago, in the stores' own schema.
func (s *subject) fillFinished(ctx context.Context, n int) error {
	conn, err := pgx.Connect(ctx, s.dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // nothing is left to be lost
	const finished = `with n as (select nextval('stint.numbers') as seq from generate_series(1, $1::int)),
		j as (insert into stint.jobs (seq, enqueued_at, run_at, max_attempts, max_stalls, priority, queue, name, payload)
			select seq, now(), now(), 10, 0, 0, $2::text, 'noop', $3::bytea from n),
		k as (insert into stint.tallies (queue, name, completed, failed, cancelled) values ($2::text, 'noop', $1::int, 0, 0))
		insert into stint.finished (seq, finished_at, run_at, started_at, fence, token, attempts, stalls, snoozes, runs, state, queue,
			name, outcome, asked, worker)
		select seq, now() - interval '30 days' + seq * interval '1 ms', now(), now(), 1, '01234567-89ab-cdef-0123-456789abcdef', 1, 0, 0,
			1, 5, $2::text, 'noop', 'complete', 'complete', 'bare' from n`
	for ; n > 0; n -= bigStep {
		if _, err := conn.Exec(ctx, finished, min(n, bigStep), core.DefaultQueue, []byte(text)); err != nil {
			return err
		}
	}
	for _, sql := range []string{"vacuum analyze stint.finished, stint.jobs", "checkpoint"} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

func pruneTable(rows []row, cfg Config) string {
	var without, with, withoutCPU, withCPU, pruned []float64
	for _, r := range rows {
		for i, p := range r.Parts {
			if i%2 == 0 {
				without, withoutCPU = append(without, p.Rate), append(withoutCPU, p.cpu())
			} else {
				with, withCPU = append(with, p.Rate), append(withCPU, p.cpu())
			}
		}
		pruned = append(pruned, r.Pruned...)
	}
	if len(with) == 0 {
		return ""
	}
	ratio := middle(with) / middle(without)
	var b strings.Builder
	total := 0.0
	for _, rate := range pruned {
		total += rate * pruneTurn.Seconds()
	}
	fmt.Fprintf(&b, "%.0f of %d finished jobs are pruned beside claims and acks at full rate, in every second turn of %v, %d of each kind.\n\n",
		total, cfg.Finished, pruneTurn, len(with))
	b.WriteString("| | claim and ack/s | CPU µs/job | pruned/s | to the rate without | at least 0.90 |\n|---|--:|--:|--:|--:|---|\n")
	fmt.Fprintf(&b, "| without | %.0f | %.1f | | | |\n", middle(without), middle(withoutCPU))
	fmt.Fprintf(&b, "| pruning | %.0f | %.1f | %.0f | %.2f, CPU %.2f | %s |\n", middle(with), middle(withCPU), middle(pruned), ratio,
		middle(withCPU)/middle(withoutCPU), mark(ratio >= 0.9))
	return b.String()
}
