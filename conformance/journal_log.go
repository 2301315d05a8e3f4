package conformance

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/journal"
)

func logCases[Tx any]() []journalCase[Tx] {
	return []journalCase[Tx]{
		{rule: "J1", name: "filters", run: logFilters[Tx],
			demands: "ReadLog answers the events that all of a filter fits, in order of seq, or the newest first"},
		{rule: "J1", name: "entity-pages", run: entityPages[Tx],
			demands: "ReadEntity answers up to limit events of exactly one entity beyond a version, in order"},
		{rule: "J13", name: "large-pages", run: largePages[Tx],
			demands: "pages of ReadEntity and ReadSettled end where payloads reach MaxPageBytes, and Load reads on"},
	}
}

func logFilters[Tx any](k *jkit[Tx]) {
	put := func(kind, id, typ, correlation string) int64 {
		var rec journal.Recorded
		k.in("Append", func(ctx context.Context, tx Tx) (err error) {
			row := journal.Row{Header: journal.Header{Type: typ, Schema: 1, Correlation: correlation}, Payload: []byte("1")}
			rec, err = k.store.Append(ctx, tx, journal.EntityKey{Kind: kind, ID: id}, journal.AnyVersion, []journal.Row{row})
			return err
		})
		k.advance(time.Second)
		return rec.Last()
	}
	start := core.Micros(k.clock.Now())
	s := []int64{
		put("account", "a", "in", "1"), put("account", "b", "out", "1"), put("safe", "a", "in", "2"),
		put("account", "a", "out", "2"), put("account", "a", "in", "3"), put("account", "A", "IN", "4"),
	}
	for what, c := range map[string]struct {
		f    journal.Filter
		want []int64
	}{
		"all":                    {journal.Filter{}, s},
		"kind":                   {journal.Filter{Kind: "account"}, []int64{s[0], s[1], s[3], s[4], s[5]}},
		"entity":                 {journal.Filter{Kind: "account", EntityID: "a"}, []int64{s[0], s[3], s[4]}},
		"id alone":               {journal.Filter{EntityID: "a"}, []int64{s[0], s[2], s[3], s[4]}},
		"type":                   {journal.Filter{Type: "in"}, []int64{s[0], s[2], s[4]}},
		"entity and type":        {journal.Filter{Kind: "account", EntityID: "a", Type: "in"}, []int64{s[0], s[4]}},
		"correlation":            {journal.Filter{Correlation: "2"}, []int64{s[2], s[3]}},
		"after":                  {journal.Filter{After: s[3]}, s[4:]},
		"before":                 {journal.Filter{Before: s[2]}, s[:2]},
		"one":                    {journal.Filter{After: s[2] - 1, Before: s[2] + 1}, s[2:3]},
		"since":                  {journal.Filter{Since: start.Add(4 * time.Second)}, s[4:]},
		"limit":                  {journal.Filter{Limit: 2}, s[:2]},
		"newest":                 {journal.Filter{Newest: true, Limit: 2}, []int64{s[5], s[4]}},
		"newest of one and type": {journal.Filter{Newest: true, Kind: "account", EntityID: "a", Type: "in", Before: s[4], Limit: 1}, s[:1]},
		"none":                   {journal.Filter{Kind: "nobody"}, nil},
	} {
		if c.f.Limit == 0 {
			c.f.Limit = 100
		}
		rows, err := k.store.ReadLog(k.ctx, c.f)
		k.ok("ReadLog", err)
		eqs(k.kit, "ReadLog by "+what, seqs(rows), slices.Concat([]int64{}, c.want))
	}
	j := k.journal()
	rows, err := j.History(k.ctx, journal.Filter{Type: "in"})
	k.ok("History", err)
	eq(k.kit, "History", len(rows), 3)
	_, err = j.History(k.ctx, journal.Filter{Limit: 1001})
	wantError[*core.InvalidError](k.kit, "History of 1,001", err)
}

func entityPages[Tx any](k *jkit[Tx]) {
	for _, id := range []string{"a", "a", "A", "a%", "a_", "a ", "a"} {
		k.append(id, 2)
	}
	k.in("ReadEntity", func(ctx context.Context, tx Tx) error {
		for after := range int64(8) {
			rows, err := k.store.ReadEntity(ctx, tx, key("a"), after, 3)
			if err != nil {
				return err
			}
			eqs(k.kit, fmt.Sprint("beyond ", after), versions(rows), append([]int64{}, upward(after+1, min(after+3, 6))...))
		}
		rows, err := k.store.ReadEntity(ctx, tx, journal.EntityKey{Kind: "safe", ID: "a"}, 0, 3)
		eq(k.kit, "events of another kind", len(rows), 0)
		return err
	})
}

func largePages[Tx any](k *jkit[Tx]) {
	// White space around it is JSON, and costs little to send and to read.
	rows := raw(5)
	for i := range 3 {
		rows[i].Payload = append(bytes.Repeat([]byte(" "), journal.MaxPageBytes/3), rows[i].Payload...)
	}
	k.in("Append", func(ctx context.Context, tx Tx) error {
		_, err := k.store.Append(ctx, tx, key("a"), journal.NoEntity, rows)
		return err
	})
	for what, read := range map[string]func(ctx context.Context, tx Tx, after journal.Row) ([]journal.Row, error){
		"ReadEntity": func(ctx context.Context, tx Tx, after journal.Row) ([]journal.Row, error) {
			return k.store.ReadEntity(ctx, tx, key("a"), after.Version, 100)
		},
		"ReadSettled": func(ctx context.Context, tx Tx, after journal.Row) ([]journal.Row, error) {
			return k.store.ReadSettled(ctx, tx, after.Seq, 100)
		},
	} {
		k.in(what, func(ctx context.Context, tx Tx) error {
			page, err := read(ctx, tx, journal.Row{})
			if err != nil {
				return err
			}
			eqs(k.kit, what+": a page of large events", versions(page), upward(1, 3))
			page, err = read(ctx, tx, page[2])
			eqs(k.kit, what+": the rest", versions(page), upward(4, 5))
			return err
		})
	}
	eq(k.kit, "events that Load folds", k.state(k.journal(), k.entity, "a").Version, 5)
}

func cursorCases[Tx any]() []journalCase[Tx] {
	return []journalCase[Tx]{
		{rule: "J7", name: "kept", run: cursorKept[Tx],
			demands: "a cursor begins with Seq 0, comes back as it was saved, and is listed by name"},
		{rule: "J7", name: "rollback", run: cursorRollback[Tx],
			demands: "a cursor is saved by its transaction's commit, and not without"},
		{rule: "J7", name: "busy", run: cursorBusy[Tx],
			demands: "a cursor that another transaction has locked is answered as busy at once, and waited for if asked"},
		{rule: "J7", name: "busy-while-new", run: cursorBusyNew[Tx], needs: []Capability{capOverlap},
			demands: "a cursor that another transaction makes, whether it would have waited for it or not, is busy as one that is there"},
		{rule: "J8", name: "clock", run: cursorClock[Tx],
			demands: "LockCursor and Cursors say what time it is by the store's clock"},
	}
}

// sameCursor compares cursors but for Now.
func (k *jkit[Tx]) sameCursor(what string, got, want journal.Cursor) {
	k.Helper()
	k.wantTime(what+": RetryAt", got.RetryAt, want.RetryAt)
	got.RetryAt, want.RetryAt, got.Now, want.Now = time.Time{}, time.Time{}, time.Time{}, time.Time{}
	eq(k.kit, what, got, want)
}

// lock locks a cursor that must be free.
func (k *jkit[Tx]) lock(ctx context.Context, tx Tx, name string) journal.Cursor {
	k.Helper()
	c, ok, err := k.store.LockCursor(ctx, tx, name, false)
	k.ok("LockCursor", err)
	eq(k.kit, "the cursor is free", ok, true)
	return c
}

func cursorKept[Tx any](k *jkit[Tx]) {
	full := journal.Cursor{
		Name: "b@2", Seq: 1 << 40, Inline: true, Failures: 3, FailedSeq: 1<<40 + 1, LastError: strings.Repeat("é'\"\n", 250),
		Parked: 7, RetryAt: k.now().Add(time.Hour),
	}
	k.in("cursors", func(ctx context.Context, tx Tx) error {
		k.sameCursor("a new one", k.lock(ctx, tx, "b@2"), journal.Cursor{Name: "b@2"})
		k.sameCursor("another new one", k.lock(ctx, tx, "a@1"), journal.Cursor{Name: "a@1"})
		if err := k.store.SaveCursor(ctx, tx, journal.Cursor{Name: "a@1"}); err != nil {
			return err
		}
		if err := k.store.SaveCursor(ctx, tx, full); err != nil {
			return err
		}
		k.sameCursor("locked again", k.lock(ctx, tx, "b@2"), full)
		return nil
	})
	all, err := k.store.Cursors(k.ctx)
	k.ok("Cursors", err)
	eq(k.kit, "cursors", len(all), 2)
	k.sameCursor("the first", all[0], journal.Cursor{Name: "a@1"})
	k.sameCursor("the second", all[1], full)
	k.in("cursors", func(ctx context.Context, tx Tx) error {
		k.sameCursor("locked later", k.lock(ctx, tx, "b@2"), full)
		return k.store.SaveCursor(ctx, tx, journal.Cursor{Name: "b@2", Seq: 1})
	})
	k.sameCursor("set back", k.cursor("b@2"), journal.Cursor{Name: "b@2", Seq: 1})
}

func cursorRollback[Tx any](k *jkit[Tx]) {
	save := func(ctx context.Context, tx Tx, seq int64) {
		c := k.lock(ctx, tx, "p@1")
		c.Seq = seq
		k.ok("SaveCursor", k.store.SaveCursor(ctx, tx, c))
	}
	t := k.begin()
	save(k.ctx, t.tx, 5)
	t.rollback()
	eq(k.kit, "seq after a rollback", k.cursor("p@1").Seq, 0)
	t = k.begin()
	save(k.ctx, t.tx, 6)
	ctx, cancel := context.WithTimeout(k.ctx, 50*time.Millisecond)
	defer cancel()
	if all, err := k.store.Cursors(ctx); err == nil && len(all) > 0 {
		eq(k.kit, "seq before the commit", all[0].Seq, 0)
	}
	t.commit()
	eq(k.kit, "seq after the commit", k.cursor("p@1").Seq, 6)
	t = k.begin()
	save(k.ctx, t.tx, 7)
	t.rollback()
	eq(k.kit, "seq after a second rollback", k.cursor("p@1").Seq, 6)
}

func cursorBusy[Tx any](k *jkit[Tx]) {
	k.in("make it", func(ctx context.Context, tx Tx) error { k.lock(ctx, tx, "p@1"); return nil })
	t := k.begin()
	c := k.lock(k.ctx, t.tx, "p@1")
	c.Seq = 9
	k.ok("SaveCursor", k.store.SaveCursor(k.ctx, t.tx, c))
	if !k.h.Serial { // elsewhere a second transaction may have to wait for other reasons
		k.in("a second transaction", func(ctx context.Context, tx Tx) error {
			_, ok, err := k.store.LockCursor(ctx, tx, "p@1", false)
			eq(k.kit, "the cursor is free", ok, false)
			k.lock(ctx, tx, "q@1")
			return err
		})
	}
	var got journal.Cursor
	ended := false
	err := k.behind(func() { ended = true; t.commit() }, func(ctx context.Context) error {
		return k.store.InTx(ctx, func(ctx context.Context, tx Tx) error {
			c, ok, err := k.store.LockCursor(ctx, tx, "p@1", true)
			if got = c; err == nil && !ok {
				err = fmt.Errorf("LockCursor with wait answered busy")
			}
			return err
		})
	})
	k.ok("a transaction that waits", err)
	eq(k.kit, "the other one ended", ended, true)
	eq(k.kit, "seq once it is free", got.Seq, 9)
}

func cursorBusyNew[Tx any](k *jkit[Tx]) {
	for _, waits := range []bool{true, false} {
		for _, commits := range []bool{true, false} {
			name := fmt.Sprintf("p-%t-%t@1", waits, commits)
			t := k.begin()
			c, ok, err := k.store.LockCursor(k.ctx, t.tx, name, waits)
			k.ok("LockCursor", err)
			eq(k.kit, "a cursor that nobody has is locked", ok, true)
			c.Seq = 9
			k.ok("SaveCursor", k.store.SaveCursor(k.ctx, t.tx, c))
			k.in("a second transaction", func(ctx context.Context, tx Tx) error {
				_, ok, err := k.store.LockCursor(ctx, tx, name, false)
				eq(k.kit, "the cursor is free", ok, false)
				return err
			})
			end, want := t.commit, int64(9)
			if !commits {
				end, want = t.rollback, 0
			}
			var got journal.Cursor
			k.ok("a transaction that waits", k.behind(end, func(ctx context.Context) error {
				return k.store.InTx(ctx, func(ctx context.Context, tx Tx) error {
					c, ok, err := k.store.LockCursor(ctx, tx, name, true)
					if got = c; err == nil && !ok {
						err = fmt.Errorf("LockCursor with wait answered busy")
					}
					return err
				})
			}))
			eq(k.kit, "seq once it is free", got.Seq, want)
		}
	}
}

func cursorClock[Tx any](k *jkit[Tx]) {
	for range 2 {
		k.in("LockCursor", func(ctx context.Context, tx Tx) error {
			k.wantTime("Now of LockCursor", k.lock(ctx, tx, "p@1").Now, k.now())
			return nil
		})
		head, err := k.store.Head(k.ctx)
		k.ok("Cursors", err)
		k.wantTime("Now of Cursors", head.Now, k.now())
		k.advance(time.Hour)
	}
}
