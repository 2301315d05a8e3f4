package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/journal"
)

func journalLoadCases[Tx any]() []journalCase[Tx] {
	return []journalCase[Tx]{
		{rule: "J9", name: "exactly-once-in-order", run: loadExactly[Tx], limit: 4 * defaultLimit,
			demands: "under 12 writers, one in 7 transactions rolled back, each committed event is applied exactly once, by seq, each entity's by version"},
	}
}

// reader is a projection that follows the log while it is written.
type reader[Tx any] struct {
	k     *jkit[Tx]
	j     *journal.Journal[Tx]
	name  string
	calls atomic.Int64 // of the projection, those of batches that were rolled back included
	again atomic.Int64 // batches that failed
}

func newReader[Tx any](k *jkit[Tx], name string) *reader[Tx] {
	r := &reader[Tx]{k: k, j: k.journal(), name: name}
	p := journal.NewProjection[Tx](name, journal.ProjectionOptions{Batch: 50})
	// What was applied, and when, are notes of the transaction that applied it.
	apply := func(ctx context.Context, tx Tx, e journal.Event[amount]) error {
		value := strconv.AppendInt(nil, r.calls.Add(1), 10)
		return k.store.PutNote(ctx, tx, journal.Note{Space: userSpace, Key: marked(name, e.Seq), Value: value})
	}
	journal.Apply(p, k.inRef, apply)
	journal.Apply(p, k.out, apply)
	k.ok("Project", r.j.Project(p))
	return r
}

// follow goes on until written answers the last seq there will be, and the projection has passed it.
func (r *reader[Tx]) follow(ctx context.Context, written func() (last int64, over bool)) error {
	for {
		last, over := written()
		n, err := r.j.CatchUp(ctx)
		switch {
		case err != nil && !again(err):
			return err
		case err != nil:
			r.again.Add(1)
		}
		if n > 0 {
			continue
		}
		if over {
			cursors, err := r.k.store.Cursors(ctx)
			if err != nil {
				return err
			}
			for _, c := range cursors {
				if c.Name == r.name+"@1" && c.Seq >= last {
					return nil
				}
			}
		}
		select {
		case <-tickOnce():
		case <-ctx.Done():
			return fmt.Errorf("projection %s never passed event %d: %w", r.name, last, ctx.Err())
		}
	}
}

func again(err error) bool {
	return errors.Is(err, core.ErrRetryTx) || errors.Is(err, core.ErrUnavailable)
}

// loadExactly has writers in callers' transactions, which wrote something before they append, over few entities, and two
// projections on two handles that follow them.
func loadExactly[Tx any](k *jkit[Tx]) {
	const writers, entities, perTx = 12, 5, 2
	total := k.h.Events
	if total == 0 {
		total = 2000
	}
	readers := []*reader[Tx]{newReader(k, "p0"), nil}
	if k.h.Open != nil {
		readers[1] = newReader(k.second(), "p1")
	} else {
		readers[1] = newReader(k, "p1")
	}
	var mu sync.Mutex
	committed := map[int64]string{}
	busy := writers
	var commits atomic.Int64
	written := func() (int64, bool) {
		mu.Lock()
		defer mu.Unlock()
		last := int64(0)
		if busy == 0 {
			last = slices.Max(slices.Collect(maps.Keys(committed)))
		}
		return last, busy == 0
	}
	k.race(writers+len(readers), func(ctx context.Context, n int) error {
		if n >= writers {
			return readers[n-writers].follow(ctx, written)
		}
		defer func() {
			mu.Lock()
			defer mu.Unlock()
			busy--
		}()
		random := rand.New(rand.NewPCG(1, uint64(n)))
		for range total / writers / perTx {
			id, size, rolls := fmt.Sprint("e", random.IntN(entities)), 1+random.IntN(2*perTx-1), random.IntN(7) == 0
			before := commits.Load()
			rec, err := writeOnce(ctx, k, readers[0].j, n, id, size, rolls, func() {
				// In memory nobody would come between otherwise.
				for i := 0; i < 100 && random.IntN(3) > 0 && commits.Load() == before && !k.h.Serial; i++ {
					runtime.Gosched()
				}
			})
			if err != nil {
				return err
			}
			commits.Add(1)
			mu.Lock()
			for i, seq := range rec.Seqs {
				committed[seq] = fmt.Sprint(id, " ", rec.Version-int64(len(rec.Seqs)-1-i))
			}
			mu.Unlock()
		}
		return nil
	})
	k.wantLog(committed)
	for _, r := range readers {
		r.check(slices.Sorted(maps.Keys(committed)))
	}
}

// writeOnce records in a transaction of the caller's that wrote before. One that rolls back recorded nothing.
func writeOnce[Tx any](ctx context.Context, k *jkit[Tx], j *journal.Journal[Tx], writer int, id string, size int, rolls bool, linger func()) (journal.Recorded, error) {
	for {
		tx, commit, rollback := k.h.Begin(k.TB, k.kit.store)
		err := k.store.PutNote(ctx, tx, journal.Note{Space: "writer", Key: fmt.Sprint(writer), Value: []byte(id)})
		linger()
		var rec journal.Recorded
		if err == nil {
			rec, err = j.Record(ctx, tx, key(id), journal.AnyVersion, k.deposits(size)...)
		}
		linger()
		switch {
		case err != nil || rolls:
			err = errors.Join(err, rollback())
			rec = journal.Recorded{}
		default:
			err = commit()
		}
		if err == nil {
			j.Announce(ctx)
			return rec, nil
		}
		if !again(err) || ctx.Err() != nil {
			return rec, fmt.Errorf("writer %d: %w", writer, err)
		}
	}
}

// wantLog checks that the log is what the writers were told, with dense versions in the order of seqs.
func (k *jkit[Tx]) wantLog(committed map[int64]string) {
	k.Helper()
	next := map[string]int64{}
	rows := k.all()
	eq(k.kit, "events", len(rows), len(committed))
	for _, r := range rows {
		eq(k.kit, fmt.Sprint("event ", r.Seq), fmt.Sprint(r.Key.ID, " ", r.Version), committed[r.Seq])
		next[r.Key.ID]++
		eq(k.kit, fmt.Sprintf("version of %s at seq %d", r.Key.ID, r.Seq), r.Version, next[r.Key.ID])
	}
}

// check compares what a projection was applied to, and in which order.
func (r *reader[Tx]) check(want []int64) {
	r.k.Helper()
	when := map[int64]int64{}
	for key, value := range r.k.space(userSpace, r.name+" ") {
		var seq int64
		_, err := fmt.Sscanf(key, r.name+" %d", &seq)
		r.k.ok("note", err)
		if when[seq], err = strconv.ParseInt(value, 10, 64); err != nil {
			r.k.failf("note %q: %v", value, err)
		}
	}
	got := slices.Sorted(maps.Keys(when))
	if missed := len(want) - len(got); missed > 0 {
		r.k.failf("projection %s missed %d of %d events", r.name, missed, len(want))
	}
	eqs(r.k.kit, "events of "+r.name, got, want)
	order := slices.SortedFunc(maps.Keys(when), func(a, b int64) int { return int(when[a] - when[b]) })
	eqs(r.k.kit, "order of "+r.name, order, want)
	if calls := r.calls.Load(); r.again.Load() == 0 && calls != int64(len(want)) {
		r.k.failf("projection %s was applied %d times to %d events, and no batch failed", r.name, calls, len(want))
	}
}
