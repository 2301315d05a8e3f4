package memstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stintmq/stint/core"
)

// ErrTxDone: the transaction was already committed or rolled back.
var ErrTxDone = errors.New("memstore: transaction already committed or rolled back")

// Transaction gathers what is done through WithTx until Commit applies all of it at one moment, or Rollback none
// (Q14). It holds no lock meanwhile: what it saw is checked again by Commit. Safe for concurrent use.
type Transaction struct {
	store *Store

	// Guarded by store.mu.
	done    bool
	inserts []*job
	byID    map[string]*job // the inserts
	ends    []completion
	events  *pendingEvents     // nil: it has not written to the journal
	keys    map[keyName]*txKey // those that it changes
}

// completion is a lease that ends by Commit.
type completion struct {
	job *job
	ack core.Ack
}

// Begin starts a transaction.
func (s *Store) Begin() *Transaction {
	return &Transaction{store: s, byID: map[string]*job{}, keys: map[keyName]*txKey{}}
}

// Commit applies the transaction and wakes the queues. If meanwhile an id or a key was taken, a lease was lost, or a job
// whose content it replaces is no longer delayed, it applies nothing and returns an error that wraps core.ErrRetryTx. Whatever it returns, the transaction is over; on one that
// was over already it returns ErrTxDone.
func (tx *Transaction) Commit() error {
	s := tx.store
	now, err := tx.finish()
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	committed := false
	defer func() { tx.endEvents(committed) }()
	for _, j := range tx.inserts {
		if s.jobs[j.rec.ID] != nil {
			return fmt.Errorf("%w: id %q was taken meanwhile", core.ErrRetryTx, j.rec.ID)
		}
	}
	for _, c := range tx.ends {
		if !c.job.holds(c.ack.Lease.Token) {
			return fmt.Errorf("%w: the lease of job %q was lost meanwhile", core.ErrRetryTx, c.ack.Lease.ID)
		}
	}
	for k, c := range tx.keys {
		if err := c.check(k, s, now); err != nil {
			return err
		}
	}
	for _, c := range tx.ends {
		s.settle(c.job, &c.ack, now)
	}
	for _, j := range tx.inserts {
		s.insert(j, now)
	}
	for k, c := range tx.keys {
		c.apply(k, s, now)
	}
	committed = true
	return nil
}

// Rollback drops the transaction. On one that was over already it returns ErrTxDone.
func (tx *Transaction) Rollback() error {
	if _, err := tx.finish(); err != nil {
		return err
	}
	tx.endEvents(false)
	tx.store.mu.Unlock()
	return nil
}

// finish locks the store and ends the transaction. On an error the store is not locked.
func (tx *Transaction) finish() (time.Time, error) {
	now, err := tx.store.enter(context.Background())
	if err != nil {
		tx.store.mu.Lock()
		defer tx.store.mu.Unlock()
		tx.endEvents(false)
		return time.Time{}, err
	}
	if tx.done {
		tx.store.mu.Unlock()
		return time.Time{}, ErrTxDone
	}
	tx.done = true
	return now, nil
}

// WithTx implements core.TxStore. What is done through the view happens by tx.Commit. A tx of another store, or one
// that is over, makes the view's methods fail.
func (s *Store) WithTx(tx *Transaction) core.TxView { return txView{s, tx} }

type txView struct {
	store *Store
	tx    *Transaction
}

// enter locks the store for a transaction that is open. On an error the store is not locked.
func (v txView) enter(ctx context.Context) (time.Time, error) {
	if v.tx == nil || v.tx.store != v.store {
		return time.Time{}, &core.InvalidError{Field: "tx", Reason: "is not a transaction of this store"}
	}
	now, err := v.store.enter(ctx)
	if err == nil && v.tx.done {
		v.store.mu.Unlock()
		err = ErrTxDone
	}
	return now, err
}

// Enqueue decides on ids and keys now, among the store's jobs and the transaction's own, and inserts by Commit. Delays
// count from now, places are drawn by Commit.
func (v txView) Enqueue(ctx context.Context, reqs []core.EnqueueRequest) ([]core.EnqueueResult, error) {
	s, tx := v.store, v.tx
	results := s.vet(reqs)
	now, err := v.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	for i := range reqs {
		if results[i].Err != nil {
			continue
		}
		id := reqs[i].ResolvedID()
		holder := s.jobs[id]
		if holder == nil {
			holder = tx.byID[id]
		}
		if holder != nil {
			results[i] = taken(holder, reqs[i].Name)
			continue
		}
		d := reqs[i].Dedupe
		if d != nil {
			if met, done := tx.meet(keyName{reqs[i].Name, d.Key}, &reqs[i], now); done {
				results[i] = met
				continue
			}
		}
		j, err := s.build(&reqs[i], id, now)
		if err != nil {
			results[i].Err = err
			continue
		}
		if d != nil {
			tx.change(keyName{reqs[i].Name, d.Key}, j, d.WindowEnd(now))
		}
		tx.inserts = append(tx.inserts, j)
		tx.byID[j.rec.ID] = j
		results[i].ID = j.rec.ID
	}
	return results, nil
}

// Complete checks the lease now and ends it by Commit. Unlike a repeated Ack, a repeated Complete is ErrLeaseLost:
// the caller's other writes must not happen twice.
func (v txView) Complete(ctx context.Context, l core.Lease, result []byte) error {
	s, tx := v.store, v.tx
	c := completion{ack: completing(l, result)}
	if err := c.ack.Validate(s.limits); err != nil {
		return err
	}
	if _, err := v.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if c.job = s.jobs[l.ID]; c.job == nil {
		return core.ErrNotFound
	}
	if !c.job.holds(l.Token) {
		return core.ErrLeaseLost
	}
	for _, other := range tx.ends {
		if other.job == c.job {
			return core.ErrLeaseLost
		}
	}
	tx.ends = append(tx.ends, c)
	return nil
}

func completing(l core.Lease, result []byte) core.Ack {
	if result != nil {
		result = append([]byte{}, result...) // kept until Commit (Q13)
	}
	return core.Ack{Lease: l, Outcome: core.OutcomeComplete, Result: result}
}

// Tx pretends that a store works inside transactions of any type T: unit tests of code that takes, say, a pgx.Tx
// give it a nil or a fake one. What is done through a view happens at once, whatever becomes of the transaction.
// Where commit and rollback matter use Begin and WithTx.
func Tx[T any](s *Store) core.TxStore[T] { return anyTx[T]{s} }

type anyTx[T any] struct{ store *Store }

func (a anyTx[T]) WithTx(T) core.TxView { return directView{a.store} }

type directView struct{ *Store }

// Complete ends the lease at once.
func (v directView) Complete(ctx context.Context, l core.Lease, result []byte) error {
	s := v.Store
	c := completion{ack: completing(l, result)}
	if err := c.ack.Validate(s.limits); err != nil {
		return err
	}
	now, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	if c.job = s.jobs[l.ID]; c.job == nil {
		return core.ErrNotFound
	}
	if !c.job.holds(l.Token) {
		return core.ErrLeaseLost
	}
	s.settle(c.job, &c.ack, now)
	return nil
}
