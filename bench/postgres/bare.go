package postgres

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stintmq/stint/core"
	pgxstore "github.com/stintmq/stint/drivers/pgx"
)

// bare is what stint's own statements allow, if no worker stands between a claim and its ack.
type bare struct {
	store *pgxstore.Store
	pool  *pgxpool.Pool
}

func openBare(ctx context.Context, dsn string) (queue, error) { return openBareIn(ctx, dsn, "") }

func openBareIn(ctx context.Context, dsn, schema string) (queue, error) {
	store, pool, err := openStore(ctx, dsn, schema)
	return bare{store, pool}, err
}

func (b bare) insert(ctx context.Context, n int) error {
	return chunks(n, func(n int) error {
		reqs := make([]core.EnqueueRequest, n)
		for i := range reqs {
			reqs[i] = core.EnqueueRequest{Name: "noop", Queue: core.DefaultQueue, MaxAttempts: 10, Payload: []byte(text)}
		}
		_, err := b.store.Enqueue(ctx, reqs)
		return err
	})
}

func (b bare) start(handle func()) (func() error, error) {
	return repeat(func(ctx context.Context) (int, error) { return b.once(ctx, handle) }), nil
}

func (b bare) once(ctx context.Context, handle func()) (int, error) {
	token := core.NewToken()
	got, err := b.store.Claim(ctx, core.ClaimRequest{Token: token, Lease: time.Minute, Worker: "bare",
		Wants: []core.Want{{Queue: core.DefaultQueue, Names: []string{"noop"}, Limit: batch}}})
	if err != nil || len(got.Jobs) == 0 {
		return 0, err
	}
	acks := make([]core.Ack, len(got.Jobs))
	for i, job := range got.Jobs {
		handle()
		acks[i] = core.Ack{Lease: core.Lease{ID: job.ID, Ref: job.Ref, Token: token}, Outcome: core.OutcomeComplete}
	}
	results, err := b.store.Ack(context.WithoutCancel(ctx), acks)
	for _, r := range results {
		if r.State != core.StateCompleted {
			return 0, fmt.Errorf("an ack was answered %q, %w", r.State, r.Err)
		}
	}
	return len(acks), err
}

func (b bare) left(ctx context.Context) (int, error) { return pending(ctx, b.store) }

func (b bare) close() error {
	defer b.pool.Close()
	return b.store.Close()
}

// repeat runs loops that do something again and again, and rest a moment when there was nothing to do.
func repeat(once func(context.Context) (int, error)) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	failed := make(chan error, loops)
	for range loops {
		all.Go(func() {
			for ctx.Err() == nil {
				n, err := once(ctx)
				if err != nil && ctx.Err() == nil {
					failed <- err
					return
				}
				if n == 0 {
					select {
					case <-ctx.Done():
					case <-time.After(time.Millisecond):
					}
				}
			}
		})
	}
	return func() error {
		cancel()
		all.Wait()
		select {
		case err := <-failed:
			return err
		default:
			return nil
		}
	}
}
