package conformance

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

func noteCases[Tx any]() []journalCase[Tx] {
	return []journalCase[Tx]{
		{rule: "J7", name: "order", run: noteOrder[Tx],
			demands: "notes of a space come by key, byte by byte, with a prefix, beyond a key, up to limit"},
		{rule: "J7", name: "exact", run: noteExact[Tx],
			demands: "a note comes back byte for byte, replaces the one before, and is gone when deleted"},
		{rule: "J7", name: "transaction", run: noteTransaction[Tx],
			demands: "notes are seen in their transaction, and elsewhere by its commit only"},
	}
}

func (k *jkit[Tx]) notes(ctx context.Context, tx Tx, space, prefix, after string, limit int) []string {
	k.Helper()
	notes, err := k.store.Notes(ctx, tx, space, prefix, after, limit)
	k.ok("Notes", err)
	keys := []string{}
	for _, n := range notes {
		eq(k.kit, "space", n.Space, space)
		keys = append(keys, n.Key)
	}
	return keys
}

func noteOrder[Tx any](k *jkit[Tx]) {
	keys := []string{
		"a", "B", "b", "ab", "a-b", "a b", "a%", "a_", "é", "e", "z", "ä", "a\x1f1", "a\x1f2", "A", "~", "10", "9", "a:b", "日",
		"a\x7f", "a\U0001F600",
		strings.Repeat("k", 128) + ":" + strings.Repeat("i", 255) + "\x1f" + strings.Repeat("9", 20),
	}
	k.in("PutNote", func(ctx context.Context, tx Tx) error {
		for _, key := range keys {
			if err := k.store.PutNote(ctx, tx, journal.Note{Space: "s/x@1", Key: key, Value: []byte(key)}); err != nil {
				return err
			}
		}
		return k.store.PutNote(ctx, tx, journal.Note{Space: "s/x@10", Key: "a", Value: nil})
	})
	slices.Sort(keys)
	with := func(prefix string) []string {
		return slices.DeleteFunc(slices.Clone(keys), func(s string) bool { return !strings.HasPrefix(s, prefix) })
	}
	k.in("Notes", func(ctx context.Context, tx Tx) error {
		eqs(k.kit, "all", k.notes(ctx, tx, "s/x@1", "", "", 100), keys)
		eqs(k.kit, "four", k.notes(ctx, tx, "s/x@1", "", "", 4), keys[:4])
		for i, after := range keys {
			eqs(k.kit, fmt.Sprintf("beyond %q", after), k.notes(ctx, tx, "s/x@1", "", after, 100), append([]string{}, keys[i+1:]...))
		}
		for _, prefix := range []string{"a", "a%", "a_", "a\x1f", "é", "k", "x"} {
			eqs(k.kit, fmt.Sprintf("with %q", prefix), k.notes(ctx, tx, "s/x@1", prefix, "", 100), with(prefix))
		}
		eqs(k.kit, "with a, beyond a b", k.notes(ctx, tx, "s/x@1", "a", "a b", 2), slices.DeleteFunc(with("a"), func(s string) bool { return s <= "a b" })[:2])
		eqs(k.kit, "another space", k.notes(ctx, tx, "s/x@10", "", "", 100), []string{"a"})
		eqs(k.kit, "no space", k.notes(ctx, tx, "s/x@", "", "", 100), []string{})
		return nil
	})
}

func noteExact[Tx any](k *jkit[Tx]) {
	put := func(space, key, value string) {
		k.in("PutNote", func(ctx context.Context, tx Tx) error {
			v := []byte(value)
			err := k.store.PutNote(ctx, tx, journal.Note{Space: space, Key: key, Value: v})
			if len(v) > 0 {
				v[0] = '!' // the store keeps no reference
			}
			return err
		})
	}
	remove := func(space, key string, want bool) {
		k.in("DeleteNote", func(ctx context.Context, tx Tx) error {
			got, err := k.store.DeleteNote(ctx, tx, space, key)
			eq(k.kit, "there was one", got, want)
			return err
		})
	}
	want := func(space string, notes map[string]string) {
		k.Helper()
		if got := k.space(space, ""); !maps.Equal(got, notes) {
			k.failf("notes of %s are %q, want %q", space, got, notes)
		}
	}
	large := strings.Repeat("{é\x00\xff", 50_000)
	put("s", "k", "one")
	put("s", "k", "two")
	put("s", "empty", "")
	put("t", "k", large)
	want("s", map[string]string{"k": "two", "empty": ""})
	want("t", map[string]string{"k": large})
	remove("s", "k", true)
	remove("s", "k", false)
	remove("s", "none", false)
	want("s", map[string]string{"empty": ""})
	want("t", map[string]string{"k": large})
	put("s", "k", "three")
	want("s", map[string]string{"empty": "", "k": "three"})
}

func noteTransaction[Tx any](k *jkit[Tx]) {
	put := func(tx Tx, key, value string) {
		k.ok("PutNote", k.store.PutNote(k.ctx, tx, journal.Note{Space: "s", Key: key, Value: []byte(value)}))
	}
	k.in("PutNote", func(_ context.Context, tx Tx) error { put(tx, "a", "1"); put(tx, "b", "1"); return nil })
	for i, commits := range []bool{false, true} {
		t := k.begin()
		put(t.tx, "b", "2")
		put(t.tx, "c", "2")
		there, err := k.store.DeleteNote(k.ctx, t.tx, "s", "a")
		k.ok("DeleteNote", err)
		eq(k.kit, "there was one", there, true)
		there, err = k.store.DeleteNote(k.ctx, t.tx, "s", "a")
		k.ok("DeleteNote", err)
		eq(k.kit, "there was one, again", there, false)
		eqs(k.kit, "in the transaction", k.notes(k.ctx, t.tx, "s", "", "", 10), []string{"b", "c"})
		end, want := t.rollback, map[string]string{"a": "1", "b": "1"}
		if commits {
			end, want = t.commit, map[string]string{"b": "2", "c": "2"}
		}
		end()
		if got := k.space("s", ""); !maps.Equal(got, want) {
			k.failf("round %d: notes are %v, want %v", i, got, want)
		}
	}
}

func announceCases[Tx any]() []journalCase[Tx] {
	return []journalCase[Tx]{
		{rule: "J11", name: "wakes", run: announceWakes[Tx],
			demands: "Announce wakes whoever waits for WakeQueue, and who comes later with a token from before"},
		{rule: "J11", name: "in-a-transaction", run: announceTx[Tx],
			demands: "AnnounceIn wakes by the commit, and not before"},
		{rule: "J11", name: "other-handle", run: announceAcross[Tx], needs: []Capability{capAcross},
			demands: "Announce wakes those who wait on another handle"},
		{rule: "J11", name: "no-job", run: announceNoJob[Tx], needs: []Capability{CapInspector},
			demands: "an announcement makes no job"},
	}
}

var wakeQueue = []string{journal.WakeQueue}

func announceWakes[Tx any](k *jkit[Tx]) {
	k.wakes("Announce", journal.WakeQueue, func() func() {
		return func() { k.ok("Announce", k.store.Announce(k.ctx)) }
	})
}

func announceTx[Tx any](k *jkit[Tx]) {
	for range 5 { // AwaitWake may return for no reason, but not each time
		t := k.begin()
		k.appendIn(t.tx, "a", journal.AnyVersion, 1)
		w := k.await(wakeQueue, k.settled(journal.WakeQueue))
		k.ok("AnnounceIn", k.store.AnnounceIn(k.ctx, t.tx))
		stays := w.stays()
		t.commit()
		k.woken("AnnounceIn", w)
		if stays {
			return
		}
	}
	k.failf("AnnounceIn woke before the commit")
}

func announceAcross[Tx any](k *jkit[Tx]) {
	o := k.second()
	k.wakesOn(o.kit, "Announce", journal.WakeQueue, func() func() {
		return func() { k.ok("Announce", k.store.Announce(k.ctx)) }
	})
	k.wakesOn(o.kit, "AnnounceIn", journal.WakeQueue, func() func() {
		return func() { k.in("AnnounceIn", k.store.AnnounceIn) }
	})
}

func announceNoJob[Tx any](k *jkit[Tx]) {
	k.ok("Announce", k.store.Announce(k.ctx))
	k.in("AnnounceIn", k.store.AnnounceIn)
	if k.insp == nil {
		return
	}
	counts, err := k.insp.Counts(k.ctx, "")
	k.ok("Counts", err)
	for state, n := range counts {
		eq(k.kit, "jobs that are "+string(state), n, 0)
	}
	k.advance(time.Hour)
	got := k.claim(core.Want{Queue: journal.WakeQueue, Names: []string{"x"}, Limit: 1})
	eq(k.kit, "jobs on WakeQueue", len(got.Jobs), 0)
}
