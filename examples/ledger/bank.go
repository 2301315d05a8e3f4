package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/uptrace/bun"

	bunstore "github.com/stintmq/stint/drivers/bun"
	"github.com/stintmq/stint/journal"
)

// Transfer is what a customer asks for. It is an entity by its id, and so can happen only once.
type Transfer struct {
	ID     string `json:"id"`
	From   string `json:"from"`
	To     string `json:"to"`
	Amount int64  `json:"amount"`
}

// Posting is an account's side of a transfer.
type Posting struct {
	Transfer string `json:"transfer"`
	Amount   int64  `json:"amount"` // negative: money that left
}

// Account is what an account's postings come to.
type Account struct{ Balance int64 }

// Refusal is a transfer that the bank did not do. That, too, is decided once.
type Refusal struct {
	Transfer
	Reason string `json:"reason"`
}

// The bank's entities and events. A snapshot now and then spares a busy account to be added up from its first posting.
var (
	accounts = journal.NewEntity[Account]("account", journal.EntityOptions{SnapshotEvery: 20})
	posted   = journal.Type(accounts, "posted", func(a *Account, e journal.Event[Posting]) error {
		a.Balance += e.Payload.Amount
		return nil
	})

	transfers = journal.NewEntity[Transfer]("transfer")
	completed = journal.Type(transfers, "completed", func(t *Transfer, e journal.Event[Transfer]) error {
		*t = e.Payload
		return nil
	})
	refused = journal.Type(transfers, "refused", func(t *Transfer, e journal.Event[Refusal]) error {
		*t = e.Payload.Transfer
		return nil
	})
)

// world is where money comes from and goes to, and the one account that may be overdrawn: all balances make zero.
const world = "world"

// OverdraftError refuses a transfer that its sender can't pay.
type OverdraftError struct {
	Account         string
	Balance, Amount int64
}

func (e *OverdraftError) Error() string {
	return fmt.Sprintf("account %s has %d and can't pay %d", e.Account, e.Balance, e.Amount)
}

// errReused refuses an id that another transfer has.
var errReused = errors.New("the id is that of another transfer")

// bank is a journal and who reacts to it.
type bank struct {
	*journal.Journal[bun.Tx]
	db       *bunstore.Store
	recorded atomic.Int64 // seen by the tap
}

func newBank(db *bunstore.Store, shop *shop, log *slog.Logger) (*bank, error) {
	j, err := journal.New(db.Journal(), journal.Options{Logger: log})
	if err != nil {
		return nil, err
	}
	b := &bank{Journal: j, db: db}
	return b, errors.Join(
		journal.On(j, webhook, completed, shop.post, webhookOptions),
		j.Project(balances()),
		journal.Tap(j, "rate", completed, func(context.Context, journal.Event[Transfer]) error {
			b.recorded.Add(1)
			return nil
		}),
	)
}

// tally counts what became of transfers.
type tally struct{ completed, refused, known, bad int64 }

// book records a batch of transfers in one transaction: all of them, or none. It returns an error for each that is
// none, by its place in the batch.
func (b *bank) book(ctx context.Context, batch []Transfer) (t tally, bad map[int]error, err error) {
	err = b.Transact(ctx, func(ctx context.Context, tx bun.Tx) error {
		t, bad = tally{}, make(map[int]error) // it may be another attempt
		p := page{b: b, tx: tx, accounts: make(map[string]*sheet[Account]), transfers: make(map[string]*sheet[Transfer])}
		for i, tr := range batch {
			if err := p.enter(ctx, tr, &t); errors.Is(err, errReused) {
				bad[i] = err
			} else if err != nil {
				return err
			}
		}
		return p.record(ctx)
	})
	return t, bad, err
}

// page is what one transaction reads, and is about to write.
type page struct {
	b         *bank
	tx        bun.Tx
	accounts  map[string]*sheet[Account]
	transfers map[string]*sheet[Transfer]
}

// sheet is an entity as it was loaded, as it will be, and what makes the difference.
type sheet[S any] struct {
	was    journal.State[S]
	will   S
	drafts []journal.Draft
}

func (s *sheet[S]) add(will S, d journal.Draft) { s.will, s.drafts = will, append(s.drafts, d) }

// look returns an entity's sheet, and loads it first if need be.
func look[S any](ctx context.Context, p *page, on map[string]*sheet[S], e *journal.Entity[S], id string) (*sheet[S], error) {
	if s := on[id]; s != nil {
		return s, nil
	}
	was, err := journal.Load(ctx, p.b.Journal, p.tx, e, id)
	on[id] = &sheet[S]{was: was, will: was.Value}
	return on[id], err
}

// enter decides on a transfer.
func (p *page) enter(ctx context.Context, tr Transfer, t *tally) error {
	order, err := look(ctx, p, p.transfers, transfers, tr.ID)
	switch {
	case err != nil:
		return err
	case order.will == tr:
		t.known++
		return nil
	case order.will != Transfer{}:
		return errReused
	}
	from, err := look(ctx, p, p.accounts, accounts, tr.From)
	if err != nil {
		return err
	}
	to, err := look(ctx, p, p.accounts, accounts, tr.To)
	if err != nil {
		return err
	}
	if err := pay(from.will, tr); err != nil {
		order.add(tr, refused.New(Refusal{tr, err.Error()}))
		t.refused++
		return nil
	}
	order.add(tr, completed.New(tr))
	from.add(Account{from.will.Balance - tr.Amount}, posted.New(Posting{tr.ID, -tr.Amount}))
	to.add(Account{to.will.Balance + tr.Amount}, posted.New(Posting{tr.ID, tr.Amount}))
	t.completed++
	return nil
}

// pay says whether an account can: nil, or an *OverdraftError.
func pay(from Account, tr Transfer) error {
	if tr.From != world && from.Balance < tr.Amount {
		return &OverdraftError{tr.From, from.Balance, tr.Amount}
	}
	return nil
}

// record writes what was decided. Everybody locks entities in this order, so nobody waits for somebody who waits for
// them; whoever comes second finds other versions than those it decided on, and Transact has it begin again.
func (p *page) record(ctx context.Context) error {
	return cmp.Or(recordAll(ctx, p, p.accounts, accounts), recordAll(ctx, p, p.transfers, transfers))
}

func recordAll[S any](ctx context.Context, p *page, sheets map[string]*sheet[S], e *journal.Entity[S]) error {
	for _, id := range slices.Sorted(maps.Keys(sheets)) {
		s := sheets[id]
		if len(s.drafts) == 0 {
			continue
		}
		if _, err := journal.RecordOn(ctx, p.b.Journal, p.tx, e, s.was, s.drafts...); err != nil {
			return err
		}
	}
	return nil
}
