package memstore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/journal"
)

// Journal keeps a journal in this store's memory, for journal.New. All of its values share one log.
//
// One transaction at a time writes to the log: the first call in a transaction that writes, or locks a cursor, waits
// for the end of the one before. So seqs have no holes, and all that is committed is settled.
func (s *Store) Journal() journal.Store[*Transaction] { return eventLog{s} }

// events is a store's log. Guarded by Store.mu, but for writer.
type events struct {
	writer   chan struct{} // holds a token while a transaction writes
	end      chan struct{} // closed with the store; nil: nobody has waited for the writer yet
	holder   *Transaction  // it; nil: nobody writes
	rows     []journal.Row // seq is the index + 1
	entities map[journal.EntityKey][]int64
	cursors  map[string]journal.Cursor
	notes    map[string]map[string][]byte
}

func newEvents() *events {
	return &events{
		writer:   make(chan struct{}, 1),
		entities: map[journal.EntityKey][]int64{},
		cursors:  map[string]journal.Cursor{},
		notes:    map[string]map[string][]byte{},
	}
}

// pendingEvents is what a transaction that holds the writer's token has not committed yet.
type pendingEvents struct {
	rows     []journal.Row
	cursors  map[string]journal.Cursor
	locked   map[string]bool
	notes    map[string]map[string][]byte // a nil value: deleted
	announce bool
}

type eventLog struct{ s *Store }

var _ journal.Store[*Transaction] = eventLog{}

// Jobs implements journal.Store.
func (l eventLog) Jobs() journal.Jobs[*Transaction] { return l.s }

// InTx implements journal.Store.
func (l eventLog) InTx(ctx context.Context, do func(context.Context, *Transaction) error) error {
	tx := l.s.Begin()
	defer func() { _ = tx.Rollback() }() // after a commit: ErrTxDone
	if err := do(ctx, tx); err != nil {
		return err
	}
	return tx.Commit()
}

// write locks the store for a transaction that has the log to itself until it ends. On an error the store is not locked.
func (l eventLog) write(ctx context.Context, tx *Transaction) (*pendingEvents, error) {
	v := txView{l.s, tx}
	if _, err := v.enter(ctx); err != nil {
		return nil, err
	}
	if tx.events != nil {
		return tx.events, nil
	}
	// Made by who needs it, as writer's token is taken: in a synctest bubble it must be the bubble's.
	if l.s.events.end == nil {
		l.s.events.end = make(chan struct{})
	}
	end := l.s.events.end
	l.s.mu.Unlock()
	select {
	case l.s.events.writer <- struct{}{}:
	case <-end:
		return nil, core.ErrClosed
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: another transaction writes to the journal: %w", core.ErrUnavailable, ctx.Err())
	}
	if _, err := v.enter(ctx); err != nil {
		<-l.s.events.writer
		return nil, err
	}
	tx.events = &pendingEvents{
		cursors: map[string]journal.Cursor{}, locked: map[string]bool{}, notes: map[string]map[string][]byte{},
	}
	l.s.events.holder = tx
	return tx.events, nil
}

// endEvents gives the log back, and if committed adds what the transaction wrote. With the store locked.
func (tx *Transaction) endEvents(committed bool) {
	p, e := tx.events, tx.store.events
	if p == nil {
		return
	}
	tx.events = nil
	if committed {
		for _, r := range p.rows {
			e.rows = append(e.rows, r)
			e.entities[r.Key] = append(e.entities[r.Key], r.Seq)
		}
		maps.Copy(e.cursors, p.cursors)
		for space, notes := range p.notes {
			if e.notes[space] == nil {
				e.notes[space] = map[string][]byte{}
			}
			for key, value := range notes {
				if value == nil {
					delete(e.notes[space], key)
				} else {
					e.notes[space][key] = value
				}
			}
		}
		if p.announce {
			tx.store.ring(tx.store.queue(journal.WakeQueue))
		}
	}
	e.holder = nil
	<-e.writer
}

// Append implements journal.Store.
func (l eventLog) Append(ctx context.Context, tx *Transaction, key journal.EntityKey, want journal.Expect, rows []journal.Row) (journal.Recorded, error) {
	p, err := l.write(ctx, tx)
	if err != nil {
		return journal.Recorded{}, err
	}
	s := l.s
	defer s.mu.Unlock()
	version := int64(len(s.events.entities[key]))
	for i := range p.rows {
		if p.rows[i].Key == key {
			version++
		}
	}
	if !want.Holds(version) {
		return journal.Recorded{}, &journal.ConflictError{Key: key, Want: want, Have: version}
	}
	rec := journal.Recorded{Key: key, Version: version, At: core.Micros(s.clock.Now())}
	for _, r := range rows {
		r = cloneRow(r)
		rec.Version++
		r.Key, r.Version, r.At = key, rec.Version, rec.At
		r.Seq = int64(len(s.events.rows)+len(p.rows)) + 1
		p.rows = append(p.rows, r)
		rec.Seqs = append(rec.Seqs, r.Seq)
	}
	return rec, nil
}

func cloneRow(r journal.Row) journal.Row {
	r.Payload, r.Meta = slices.Clone(r.Payload), maps.Clone(r.Meta)
	return r
}

// visible calls see for the log's rows beyond a seq as a transaction sees them, in order, until it returns false. With
// the store locked.
func (l eventLog) visible(tx *Transaction, after int64, see func(*journal.Row) bool) {
	own := tx.pendingRows()
	committed := l.s.events.rows
	for i := max(after, 0); i < int64(len(committed)); i++ {
		if !see(&committed[i]) {
			return
		}
	}
	for i := range own {
		if own[i].Seq > after && !see(&own[i]) {
			return
		}
	}
}

func (tx *Transaction) pendingRows() []journal.Row {
	if tx == nil || tx.events == nil {
		return nil
	}
	return tx.events.rows
}

// ReadEntity implements journal.Store.
func (l eventLog) ReadEntity(ctx context.Context, tx *Transaction, key journal.EntityKey, after int64, limit int) ([]journal.Row, error) {
	if _, err := (txView{l.s, tx}).enter(ctx); err != nil {
		return nil, err
	}
	defer l.s.mu.Unlock()
	p := page{left: limit}
	seqs := l.s.events.entities[key]
	for i := max(after, 0); i < int64(len(seqs)) && p.open(); i++ {
		p.add(&l.s.events.rows[seqs[i]-1])
	}
	own := tx.pendingRows()
	for i := 0; i < len(own) && p.open(); i++ {
		if own[i].Key == key && own[i].Version > after {
			p.add(&own[i])
		}
	}
	return p.rows, nil
}

// page is what one call returns of a log that may be long.
type page struct {
	rows        []journal.Row
	left, bytes int
}

func (p *page) open() bool { return p.left > 0 && p.bytes < journal.MaxPageBytes }

func (p *page) add(r *journal.Row) {
	p.rows = append(p.rows, cloneRow(*r))
	p.left--
	p.bytes += len(r.Payload)
}

// ReadSettled implements journal.Store.
func (l eventLog) ReadSettled(ctx context.Context, tx *Transaction, after int64, limit int) ([]journal.Row, error) {
	if _, err := (txView{l.s, tx}).enter(ctx); err != nil {
		return nil, err
	}
	defer l.s.mu.Unlock()
	p := page{left: limit}
	l.visible(tx, after, func(r *journal.Row) bool {
		if p.open() {
			p.add(r)
		}
		return p.open()
	})
	drawn := int64(len(l.s.events.rows))
	if tx.events != nil {
		drawn += int64(len(tx.events.rows))
	}
	if after > drawn {
		return nil, &journal.AheadError{After: after, Drawn: drawn}
	}
	return p.rows, nil
}

// ReadLog implements journal.Store.
func (l eventLog) ReadLog(ctx context.Context, f journal.Filter) ([]journal.Row, error) {
	if _, err := l.s.enter(ctx); err != nil {
		return nil, err
	}
	defer l.s.mu.Unlock()
	rows := l.s.events.rows
	var out []journal.Row
	for i := range rows {
		r := &rows[i]
		if f.Newest {
			r = &rows[len(rows)-1-i]
		}
		if passes(f, r) {
			if out = append(out, cloneRow(*r)); len(out) == f.Limit {
				break
			}
		}
	}
	return out, nil
}

func passes(f journal.Filter, r *journal.Row) bool {
	return r.Seq > f.After && (f.Before == 0 || r.Seq < f.Before) && !r.At.Before(f.Since) &&
		(f.Kind == "" || r.Key.Kind == f.Kind) && (f.EntityID == "" || r.Key.ID == f.EntityID) &&
		(f.Type == "" || r.Type == f.Type) && (f.Correlation == "" || r.Correlation == f.Correlation)
}

// LockCursor implements journal.Store.
func (l eventLog) LockCursor(ctx context.Context, tx *Transaction, name string, wait bool) (journal.Cursor, bool, error) {
	if !wait {
		if _, err := l.s.enter(ctx); err != nil {
			return journal.Cursor{}, false, err
		}
		holder := l.s.events.holder
		busy := holder != nil && holder != tx && holder.events.locked[name]
		l.s.mu.Unlock()
		if busy {
			return journal.Cursor{}, false, nil
		}
	}
	p, err := l.write(ctx, tx)
	if err != nil {
		return journal.Cursor{}, false, err
	}
	defer l.s.mu.Unlock()
	p.locked[name] = true
	c, ok := p.cursors[name]
	if !ok {
		c = l.s.events.cursors[name]
	}
	c.Name = name
	p.cursors[name] = c
	c.Now = core.Micros(l.s.clock.Now())
	return c, true, nil
}

// SaveCursor implements journal.Store.
func (l eventLog) SaveCursor(ctx context.Context, tx *Transaction, c journal.Cursor) error {
	p, err := l.write(ctx, tx)
	if err != nil {
		return err
	}
	defer l.s.mu.Unlock()
	if !p.locked[c.Name] {
		return &core.InvalidError{Field: "Cursor", Reason: "is not locked by this transaction"}
	}
	c.Now = time.Time{} // not kept
	p.cursors[c.Name] = c
	return nil
}

// Cursors implements journal.Store.
func (l eventLog) Cursors(ctx context.Context) ([]journal.Cursor, error) {
	if _, err := l.s.enter(ctx); err != nil {
		return nil, err
	}
	defer l.s.mu.Unlock()
	e := l.s.events
	var out []journal.Cursor
	for _, name := range slices.Sorted(maps.Keys(e.cursors)) {
		out = append(out, e.cursors[name])
	}
	return out, nil
}

// Head implements journal.Store.
func (l eventLog) Head(ctx context.Context) (journal.Head, error) {
	now, err := l.s.enter(ctx)
	if err != nil {
		return journal.Head{}, err
	}
	defer l.s.mu.Unlock()
	return journal.Head{Seq: int64(len(l.s.events.rows)), Now: now}, nil
}

// PutNote implements journal.Store.
func (l eventLog) PutNote(ctx context.Context, tx *Transaction, n journal.Note) error {
	p, err := l.write(ctx, tx)
	if err != nil {
		return err
	}
	defer l.s.mu.Unlock()
	p.put(n.Space, n.Key, append([]byte{}, n.Value...))
	return nil
}

func (p *pendingEvents) put(space, key string, value []byte) {
	if p.notes[space] == nil {
		p.notes[space] = map[string][]byte{}
	}
	p.notes[space][key] = value
}

// DeleteNote implements journal.Store.
func (l eventLog) DeleteNote(ctx context.Context, tx *Transaction, space, key string) (bool, error) {
	p, err := l.write(ctx, tx)
	if err != nil {
		return false, err
	}
	defer l.s.mu.Unlock()
	_, there := l.notes(tx, space)[key]
	p.put(space, key, nil)
	return there, nil
}

// notes returns a space's notes as a transaction sees them. With the store locked.
func (l eventLog) notes(tx *Transaction, space string) map[string][]byte {
	committed := l.s.events.notes[space]
	if tx.events == nil || tx.events.notes[space] == nil {
		return committed
	}
	all := maps.Clone(committed)
	if all == nil {
		all = map[string][]byte{}
	}
	for key, value := range tx.events.notes[space] {
		if value == nil {
			delete(all, key)
		} else {
			all[key] = value
		}
	}
	return all
}

// Notes implements journal.Store.
func (l eventLog) Notes(ctx context.Context, tx *Transaction, space, prefix, after string, limit int) ([]journal.Note, error) {
	if _, err := (txView{l.s, tx}).enter(ctx); err != nil {
		return nil, err
	}
	defer l.s.mu.Unlock()
	all := l.notes(tx, space)
	var out []journal.Note
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if strings.HasPrefix(key, prefix) && key > after && len(out) < limit {
			out = append(out, journal.Note{Space: space, Key: key, Value: slices.Clone(all[key])})
		}
	}
	return out, nil
}

// Announce implements journal.Store.
func (l eventLog) Announce(ctx context.Context) error {
	if _, err := l.s.enter(ctx); err != nil {
		return err
	}
	defer l.s.mu.Unlock()
	l.s.ring(l.s.queue(journal.WakeQueue))
	return nil
}

// AnnounceIn implements journal.Store.
func (l eventLog) AnnounceIn(ctx context.Context, tx *Transaction) error {
	p, err := l.write(ctx, tx)
	if err != nil {
		return err
	}
	defer l.s.mu.Unlock()
	p.announce = true
	return nil
}
