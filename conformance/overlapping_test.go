package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
	"github.com/stintmq/stint/journal"
)

// overlapping is a journal in memory whose transactions stand open side by side, as those of a database do: seqs are
// drawn at once, become visible by the commit, and are not given back. Entities, cursors and notes are locked until the
// transaction ends. What it has of jobs is the memory store's.
type overlapping struct {
	queue *memstore.Store
	clock core.Clock

	mu      sync.Mutex
	ended   chan struct{} // closed, and replaced, whenever a transaction ends
	seq     int64         // the last one drawn
	xid     int64
	open    map[*overTx]bool
	locks   map[string]*overTx
	rows    []overRow // committed, by seq
	cursors map[string]journal.Cursor
	notes   map[[2]string][]byte

	// Faults.
	read        func(tx *overTx, after int64) []overRow // in place of the horizon
	lockless    map[string]bool                         // kinds of locks that are not taken: e, c, n
	saveOutside bool                                    // cursors
	burn        bool                                    // a rollback gives no version back
	burnt       map[journal.EntityKey]int64
	dirty       bool // ReadLog sees what is not committed
	untyped     bool // a deadlock is an error like another
}

type overRow struct {
	journal.Row
	xid int64
}

type overTx struct {
	*memstore.Transaction
	o        *overlapping
	xid      int64 // 0: it has written nothing
	appended time.Time
	rows     []overRow
	cursors  map[string]journal.Cursor
	notes    map[[2]string][]byte // nil: deleted
	waits    *overTx
	announce bool
	done     bool
}

// overJobs is the queue in transactions of the journal.
type overJobs struct {
	*memstore.Store
	o *overlapping
}

func (j overJobs) WithTx(tx *overTx) core.TxView { return j.Store.WithTx(tx.Transaction) }

func newOverlapping(clock core.Clock) *overlapping {
	return &overlapping{
		queue: memstore.New(memstore.Options{Clock: clock}), clock: clock, ended: make(chan struct{}), open: map[*overTx]bool{},
		locks: map[string]*overTx{}, cursors: map[string]journal.Cursor{}, notes: map[[2]string][]byte{},
		lockless: map[string]bool{}, burnt: map[journal.EntityKey]int64{},
	}
}

var _ journal.Store[*overTx] = (*overlapping)(nil)

func (o *overlapping) Jobs() journal.Jobs[*overTx] { return overJobs{o.queue, o} }

func (o *overlapping) begin() *overTx {
	tx := &overTx{Transaction: o.queue.Begin(), o: o, cursors: map[string]journal.Cursor{}, notes: map[[2]string][]byte{}}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open[tx] = true
	return tx
}

func (tx *overTx) Commit() error   { return tx.end(true) }
func (tx *overTx) Rollback() error { return tx.end(false) }

func (tx *overTx) end(commit bool) error {
	o := tx.o
	o.mu.Lock()
	defer o.mu.Unlock()
	if tx.done {
		return memstore.ErrTxDone
	}
	tx.done = true
	var err error
	if commit {
		if err = tx.Transaction.Commit(); err != nil {
			commit = false
		}
	} else {
		err = tx.Transaction.Rollback()
	}
	if commit {
		o.rows = append(o.rows, tx.rows...)
		slices.SortFunc(o.rows, func(a, b overRow) int { return int(a.Seq - b.Seq) })
		maps.Copy(o.cursors, tx.cursors)
		for k, v := range tx.notes {
			if o.notes[k] = v; v == nil {
				delete(o.notes, k)
			}
		}
	} else if o.burn {
		for _, r := range tx.rows {
			o.burnt[r.Key]++
		}
	}
	delete(o.open, tx)
	maps.DeleteFunc(o.locks, func(_ string, holder *overTx) bool { return holder == tx })
	close(o.ended)
	o.ended = make(chan struct{})
	if commit && tx.announce {
		return o.queue.Journal().Announce(context.Background())
	}
	return err
}

func (o *overlapping) InTx(ctx context.Context, do func(context.Context, *overTx) error) error {
	tx := o.begin()
	defer func() { _ = tx.Rollback() }()
	if err := do(ctx, tx); err != nil {
		return err
	}
	return tx.Commit()
}

// enter begins a call: with no error, o.mu is locked.
func (o *overlapping) enter(ctx context.Context, tx *overTx) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("overlapping: %w: %w", core.ErrUnavailable, err)
	}
	o.mu.Lock()
	if tx != nil && tx.done {
		o.mu.Unlock()
		return memstore.ErrTxDone
	}
	return nil
}

// lock locks a name until the end of tx, with o.mu locked; false: somebody else has it, and wait is not set.
func (o *overlapping) lock(ctx context.Context, tx *overTx, kind, name string, wait bool) (bool, error) {
	if tx.xid == 0 {
		o.xid++
		tx.xid = o.xid
	}
	if o.lockless[kind] {
		return true, nil
	}
	name = kind + name
	for {
		holder := o.locks[name]
		switch {
		case holder == nil || holder == tx:
			o.locks[name] = tx
			return true, nil
		case !wait:
			return false, nil
		}
		for t := holder; t != nil; t = t.waits {
			if t == tx && o.untyped {
				return false, errors.New("deadlock")
			} else if t == tx {
				return false, fmt.Errorf("deadlock: %w", core.ErrRetryTx)
			}
		}
		tx.waits = holder
		ended := o.ended
		o.mu.Unlock()
		select {
		case <-ended:
		case <-ctx.Done():
		}
		o.mu.Lock()
		tx.waits = nil
		if err := ctx.Err(); err != nil {
			return false, fmt.Errorf("overlapping: %w: %w", core.ErrUnavailable, err)
		}
	}
}

// seen are the rows that a transaction sees, by seq, with o.mu locked.
func (o *overlapping) seen(tx *overTx) []overRow {
	if tx == nil || len(tx.rows) == 0 {
		return o.rows
	}
	rows := slices.Concat(o.rows, tx.rows)
	slices.SortFunc(rows, func(a, b overRow) int { return int(a.Seq - b.Seq) })
	return rows
}

func copied(rows []overRow, limit int, want func(*journal.Row) bool) []journal.Row {
	var out []journal.Row
	bytes := 0
	for i := range rows {
		if r := rows[i].Row; len(out) < limit && bytes < journal.MaxPageBytes && want(&r) {
			bytes += len(r.Payload)
			r.Payload, r.Meta = slices.Clone(r.Payload), maps.Clone(r.Meta)
			out = append(out, r)
		}
	}
	return out
}

func (o *overlapping) Append(ctx context.Context, tx *overTx, key journal.EntityKey, want journal.Expect, rows []journal.Row) (journal.Recorded, error) {
	if err := o.enter(ctx, tx); err != nil {
		return journal.Recorded{}, err
	}
	defer o.mu.Unlock()
	if _, err := o.lock(ctx, tx, "e", key.String(), true); err != nil {
		return journal.Recorded{}, err
	}
	rec := journal.Recorded{Key: key, At: core.Micros(o.clock.Now()), Version: o.burnt[key]}
	for _, r := range o.seen(tx) {
		if r.Key == key {
			rec.Version++
		}
	}
	if !want.Holds(rec.Version) {
		return journal.Recorded{}, &journal.ConflictError{Key: key, Want: want, Have: rec.Version}
	}
	if tx.appended.IsZero() {
		tx.appended = o.clock.Now()
	}
	for _, r := range rows {
		o.seq++
		rec.Version++
		r.Payload, r.Meta = slices.Clone(r.Payload), maps.Clone(r.Meta)
		r.Key, r.Seq, r.Version, r.At = key, o.seq, rec.Version, rec.At
		tx.rows = append(tx.rows, overRow{r, tx.xid})
		rec.Seqs = append(rec.Seqs, r.Seq)
	}
	return rec, nil
}

func (o *overlapping) ReadEntity(ctx context.Context, tx *overTx, key journal.EntityKey, after int64, limit int) ([]journal.Row, error) {
	if err := o.enter(ctx, tx); err != nil {
		return nil, err
	}
	defer o.mu.Unlock()
	return copied(o.seen(tx), limit, func(r *journal.Row) bool { return r.Key == key && r.Version > after }), nil
}

// horizon is below the first seq that an open transaction has drawn.
func (o *overlapping) horizon() int64 {
	h := o.seq
	for tx := range o.open {
		if len(tx.rows) > 0 {
			h = min(h, tx.rows[0].Seq-1)
		}
	}
	return h
}

func (o *overlapping) ReadSettled(ctx context.Context, tx *overTx, after int64, limit int) ([]journal.Row, error) {
	if err := o.enter(ctx, tx); err != nil {
		return nil, err
	}
	defer o.mu.Unlock()
	if after > o.seq {
		return nil, &journal.AheadError{After: after, Drawn: o.seq}
	}
	if o.read != nil {
		return copied(o.read(tx, after), limit, func(*journal.Row) bool { return true }), nil
	}
	h := o.horizon()
	return copied(o.rows, limit, func(r *journal.Row) bool { return r.Seq > after && r.Seq <= h }), nil
}

func (o *overlapping) ReadLog(ctx context.Context, f journal.Filter) ([]journal.Row, error) {
	if err := o.enter(ctx, nil); err != nil {
		return nil, err
	}
	defer o.mu.Unlock()
	rows := slices.Clone(o.rows)
	if o.dirty {
		for tx := range o.open {
			rows = append(rows, tx.rows...)
		}
	}
	if f.Newest {
		slices.Reverse(rows)
	}
	return copied(rows, f.Limit, func(r *journal.Row) bool {
		return r.Seq > f.After && (f.Before == 0 || r.Seq < f.Before) && !r.At.Before(f.Since) &&
			(f.Kind == "" || r.Key.Kind == f.Kind) && (f.EntityID == "" || r.Key.ID == f.EntityID) &&
			(f.Type == "" || r.Type == f.Type) && (f.Correlation == "" || r.Correlation == f.Correlation)
	}), nil
}

func (o *overlapping) LockCursor(ctx context.Context, tx *overTx, name string, wait bool) (journal.Cursor, bool, error) {
	if err := o.enter(ctx, tx); err != nil {
		return journal.Cursor{}, false, err
	}
	defer o.mu.Unlock()
	if ok, err := o.lock(ctx, tx, "c", name, wait); !ok {
		return journal.Cursor{}, false, err
	}
	c, ok := tx.cursors[name]
	if !ok {
		c = o.cursors[name]
	}
	c.Name = name
	tx.cursors[name] = c
	c.Now = core.Micros(o.clock.Now())
	return c, true, nil
}

func (o *overlapping) SaveCursor(ctx context.Context, tx *overTx, c journal.Cursor) error {
	if err := o.enter(ctx, tx); err != nil {
		return err
	}
	defer o.mu.Unlock()
	c.Now = time.Time{}
	tx.cursors[c.Name] = c
	if o.saveOutside {
		o.cursors[c.Name] = c
	}
	return nil
}

func (o *overlapping) Cursors(ctx context.Context) ([]journal.Cursor, error) {
	if err := o.enter(ctx, nil); err != nil {
		return nil, err
	}
	defer o.mu.Unlock()
	var out []journal.Cursor
	for _, name := range slices.Sorted(maps.Keys(o.cursors)) {
		out = append(out, o.cursors[name])
	}
	return out, nil
}

func (o *overlapping) Head(ctx context.Context) (journal.Head, error) {
	if err := o.enter(ctx, nil); err != nil {
		return journal.Head{}, err
	}
	defer o.mu.Unlock()
	head := journal.Head{Now: core.Micros(o.clock.Now())}
	if len(o.rows) > 0 {
		head.Seq = o.rows[len(o.rows)-1].Seq
	}
	for tx := range o.open {
		if len(tx.rows) > 0 {
			head.OldestAppender = max(head.OldestAppender, o.clock.Now().Sub(tx.appended), 1)
		}
	}
	return head, nil
}

// note returns a note as a transaction sees it, with o.mu locked; nil: there is none.
func (o *overlapping) note(tx *overTx, at [2]string) []byte {
	if v, ok := tx.notes[at]; ok {
		return v
	}
	return o.notes[at]
}

func (o *overlapping) PutNote(ctx context.Context, tx *overTx, n journal.Note) error {
	if err := o.enter(ctx, tx); err != nil {
		return err
	}
	defer o.mu.Unlock()
	at := [2]string{n.Space, n.Key}
	if _, err := o.lock(ctx, tx, "n", n.Space+"\x00"+n.Key, true); err != nil {
		return err
	}
	tx.notes[at] = append([]byte{}, n.Value...)
	return nil
}

func (o *overlapping) DeleteNote(ctx context.Context, tx *overTx, space, key string) (bool, error) {
	if err := o.enter(ctx, tx); err != nil {
		return false, err
	}
	defer o.mu.Unlock()
	if _, err := o.lock(ctx, tx, "n", space+"\x00"+key, true); err != nil {
		return false, err
	}
	there := o.note(tx, [2]string{space, key}) != nil
	tx.notes[[2]string{space, key}] = nil
	return there, nil
}

func (o *overlapping) Notes(ctx context.Context, tx *overTx, space, prefix, after string, limit int) ([]journal.Note, error) {
	if err := o.enter(ctx, tx); err != nil {
		return nil, err
	}
	defer o.mu.Unlock()
	all := maps.Clone(o.notes)
	maps.Copy(all, tx.notes)
	var out []journal.Note
	for at, v := range all {
		if v != nil && at[0] == space && strings.HasPrefix(at[1], prefix) && at[1] > after {
			out = append(out, journal.Note{Space: space, Key: at[1], Value: slices.Clone(v)})
		}
	}
	slices.SortFunc(out, func(a, b journal.Note) int { return strings.Compare(a.Key, b.Key) })
	return out[:min(limit, len(out))], nil
}

func (o *overlapping) Announce(ctx context.Context) error { return o.queue.Journal().Announce(ctx) }

func (o *overlapping) AnnounceIn(_ context.Context, tx *overTx) error {
	tx.announce = true
	return nil
}
