package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"text/tabwriter"

	"github.com/stintmq/stint/core"
	bunstore "github.com/stintmq/stint/drivers/bun"
)

// sell has each shop take its orders, and one more whose card is declined.
func sell(ctx context.Context, shops []shop, n int, out io.Writer) (sold []Order, err error) {
	for _, s := range shops {
		for range n {
			o, err := s.Sell(ctx, "a book", func() error { return nil })
			if err != nil {
				return nil, err
			}
			sold = append(sold, o)
		}
		declined, err := s.Sell(ctx, "a yacht", func() error { return errDeclined })
		if !errors.Is(err, errDeclined) {
			return nil, fmt.Errorf("the yacht was sold: %w", err)
		}
		_, err = s.Get(ctx, fmt.Sprintf("%s:%d", shipOrder.Name(), declined.ID))
		if !errors.Is(err, core.ErrNotFound) {
			return nil, fmt.Errorf("the yacht has a job: %w", err)
		}
		printf(out, "%-3s took %d orders; one more was declined and rolled back, and its job with it\n", s.Name(), n)
	}
	return sold, nil
}

// ship runs a worker per shop until every order is shipped.
func ship(ctx context.Context, shops []shop, sold []Order, out io.Writer) (err error) {
	working, stop := context.WithCancel(ctx)
	var crew sync.WaitGroup
	ended := make([]error, len(shops))
	all := newMeeting(len(shops))
	for i, s := range shops {
		w, err := core.NewWorker(s, core.WorkerOptions{Concurrency: 1})
		if err != nil {
			stop()
			crew.Wait()
			return err
		}
		arrive := all.arrive()
		shipOrder.Handle(w, func(ctx context.Context, o Order) (Shipment, error) {
			// Only so that none of three quick workers has shipped everything before the others have begun: each
			// waits, with its first order, until all have one.
			if err := arrive(ctx); err != nil {
				return Shipment{}, err
			}
			done := Shipment{ShippedBy: s.Name()}
			return done, s.Ship(ctx, o, func(view core.TxView) error {
				return shipOrder.Complete(ctx, view, done) // ends the job by the commit of the shipment
			})
		})
		crew.Go(func() {
			defer stop() // a worker that ends too soon ends them all
			ended[i] = w.Run(working)
		})
	}
	// Whoever sold an order can wait for its shipment, whoever ships it.
	byName := make(map[string]shop, len(shops))
	for _, s := range shops {
		byName[s.Name()] = s
	}
	for _, o := range sold {
		if _, err = shipOrder.Await(working, byName[o.PlacedBy], fmt.Sprintf("%s:%d", shipOrder.Name(), o.ID)); err != nil {
			break
		}
	}
	stop()
	crew.Wait()
	if err == nil {
		printf(out, "all %d orders are shipped\n", len(sold))
	}
	return errors.Join(append(ended, err)...)
}

// meeting has several wait for each other, once.
type meeting struct {
	mu      sync.Mutex
	missing int
	all     chan struct{}
}

func newMeeting(n int) *meeting { return &meeting{missing: n, all: make(chan struct{})} }

// arrive returns what one of them calls: it returns once all have called theirs.
func (m *meeting) arrive() func(ctx context.Context) error {
	here := sync.OnceFunc(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.missing--; m.missing == 0 {
			close(m.all)
		}
	})
	return func(ctx context.Context) error {
		here()
		select {
		case <-m.all:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// parcel counts what one shop sold and another shipped.
type parcel struct {
	PlacedBy, ShippedBy string
	Orders              int
}

func attempts(n int) string {
	if n == 1 {
		return "1 attempt"
	}
	return fmt.Sprintf("%d attempts", n)
}

// report says who shipped what, as bun reads it.
func report(ctx context.Context, shops []shop, out io.Writer) error {
	for _, s := range shops {
		b, ok := s.(*bunShop)
		if !ok {
			continue
		}
		var parcels []parcel
		err := b.db.NewSelect().Model((*row)(nil)).ModelTableExpr(b.table+" AS o").
			ColumnExpr("placed_by, shipped_by, count(*) AS orders").
			GroupExpr("1, 2").OrderExpr("1, 2").Scan(ctx, &parcels)
		if err != nil {
			return err
		}
		table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		printf(table, "sold by\tshipped by\torders\n")
		for _, p := range parcels {
			printf(table, "%s\t%s\t%d\n", p.PlacedBy, p.ShippedBy, p.Orders)
		}
		if err := table.Flush(); err != nil {
			return err
		}
		// Every job is a row of a view, for queries of an application's own.
		var last bunstore.JobStatus
		if err := b.SelectJobs().Where("state = ?", core.StateCompleted).Order("finished_at DESC").Limit(1).Scan(ctx, &last); err != nil {
			return err
		}
		printf(out, "the last job to end was %s, after %s on worker %s\n", last.ID, attempts(last.Attempts), last.Worker)
	}
	return nil
}
