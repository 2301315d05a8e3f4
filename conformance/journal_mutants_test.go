package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/failing"
	"github.com/stintmq/stint/journal"
)

// journalMutant is a journal's store with one fault.
type journalMutant struct {
	topic, fault string // the topic should catch it: it comes first, to save time
	breaks       func(o *overlapping, b *brokenLog)
}

// TestJournalMutants holds RunJournal against broken stores: each must fail a case.
func TestJournalMutants(t *testing.T) {
	for name, mutants := range map[string][]journalMutant{
		"order": journalOrderMutants(), "write": journalWriteMutants(), "read": journalReadMutants(),
		"cursor": journalCursorMutants(), "notes": journalNoteMutants(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, m := range mutants {
				h := overlappingHarness(m.breaks)
				caught, why := firstJournalFailure(t, &h, m.topic)
				if caught == "" {
					t.Errorf("mutant %q survived", m.fault)
					continue
				}
				line, _, _ := strings.Cut(why, "\n")
				t.Logf("mutant %q: caught by %s: %.100s", m.fault, caught, line)
			}
			t.Logf("%d mutants", len(mutants))
		})
	}
}

// firstJournalFailure is firstFailure for journals.
func firstJournalFailure(t *testing.T, h *JournalHarness[*overTx], first string) (caught, why string) {
	t.Helper()
	s := newJournalSuite(h)
	s.patience = 300 * time.Millisecond
	all := journalTopics(h)
	slices.SortStableFunc(all, func(a, b topic) int {
		switch first {
		case a.name:
			return -1
		case b.name:
			return 1
		}
		return 0
	})
	for _, top := range all {
		for _, c := range top.cases {
			if top.name != "load-test" {
				c.limit = 600 * time.Millisecond // only what never happens takes so long
			}
			r := failing.Run(t, func(tb testing.TB) { s.runCase(tb, c, NewClock()) })
			if r.Failed {
				return c.rule + " " + top.name + "/" + c.name, strings.Join(r.Said, "\n")
			}
		}
	}
	return "", ""
}

func journalOrderMutants() []journalMutant {
	oldest := func(o *overlapping) int64 {
		x := o.xid + 1
		for tx := range o.open {
			if tx.xid > 0 {
				x = min(x, tx.xid)
			}
		}
		return x
	}
	beyond := func(o *overlapping, after int64) []overRow {
		return slices.DeleteFunc(slices.Clone(o.rows), func(r overRow) bool { return r.Seq <= after })
	}
	return []journalMutant{
		{"settled", "reads all that is beyond the cursor", func(o *overlapping, _ *brokenLog) {
			o.read = func(_ *overTx, after int64) []overRow { return beyond(o, after) }
		}},
		{"load-test", "reads all that is beyond the cursor, under load", func(o *overlapping, _ *brokenLog) {
			o.read = func(_ *overTx, after int64) []overRow { return beyond(o, after) }
		}},
		{"settled", "reads what is older than the oldest transaction", func(o *overlapping, _ *brokenLog) {
			o.read = func(_ *overTx, after int64) []overRow {
				return slices.DeleteFunc(beyond(o, after), func(r overRow) bool { return r.xid >= oldest(o) })
			}
		}},
		{"settled", "reads in the order of transactions", func(o *overlapping, _ *brokenLog) {
			o.read = func(_ *overTx, after int64) []overRow {
				rows := slices.DeleteFunc(slices.Clone(o.rows), func(r overRow) bool { return r.xid >= oldest(o) })
				slices.SortStableFunc(rows, func(a, b overRow) int { return int(a.xid - b.xid) })
				return rows[slices.IndexFunc(rows, func(r overRow) bool { return r.Seq == after })+1:]
			}
		}},
		{"settled", "is held up by whoever writes", func(o *overlapping, _ *brokenLog) {
			o.read = func(_ *overTx, after int64) []overRow {
				for tx := range o.open {
					if tx.xid > 0 {
						return nil
					}
				}
				return beyond(o, after)
			}
		}},
		{"settled", "is held up by a dead gap", func(o *overlapping, _ *brokenLog) {
			o.read = func(_ *overTx, after int64) []overRow {
				rows := beyond(o, after)
				for i, r := range rows {
					if after++; r.Seq != after {
						return rows[:i]
					}
				}
				return rows
			}
		}},
		{"settled", "looks at gaps at the page's end only", func(o *overlapping, b *brokenLog) {
			b.readSettled = func(ctx context.Context, tx *overTx, after int64, limit int) ([]journal.Row, error) {
				rows, err := o.ReadSettled(ctx, tx, after, limit)
				if err == nil && len(rows) > 0 {
					o.mu.Lock()
					defer o.mu.Unlock()
					return copied(beyond(o, after), limit, func(*journal.Row) bool { return true }), nil
				}
				return rows, err
			}
		}},
		{"settled", "answers the event at the cursor again", func(o *overlapping, b *brokenLog) {
			b.readSettled = func(ctx context.Context, tx *overTx, after int64, limit int) ([]journal.Row, error) {
				return o.ReadSettled(ctx, tx, max(after-1, 0), limit)
			}
		}},
		{"tap", "answers a page's first event again in large pages", func(o *overlapping, b *brokenLog) {
			b.readSettled = func(ctx context.Context, tx *overTx, after int64, limit int) ([]journal.Row, error) {
				if limit == 500 && after > 0 {
					after--
				}
				return o.ReadSettled(ctx, tx, after, limit)
			}
		}},
		{"settled", "skips one event a page", func(o *overlapping, b *brokenLog) {
			b.readSettled = func(ctx context.Context, tx *overTx, after int64, limit int) ([]journal.Row, error) {
				rows, err := o.ReadSettled(ctx, tx, after, limit)
				if len(rows) > 1 {
					rows = slices.Delete(rows, 0, 1)
				}
				return rows, err
			}
		}},
		{"settled", "answers more than a page", func(o *overlapping, b *brokenLog) {
			b.readSettled = func(ctx context.Context, tx *overTx, after int64, limit int) ([]journal.Row, error) {
				return o.ReadSettled(ctx, tx, after, limit+1)
			}
		}},
		{"settled", "knows no oldest appender", func(_ *overlapping, b *brokenLog) {
			b.headed(func(h *journal.Head) { h.OldestAppender = 0 })
		}},
		{"overlap", "does not lock entities", func(o *overlapping, _ *brokenLog) { o.lockless["e"] = true }},
		{"overlap", "a deadlock is an error like another", func(o *overlapping, _ *brokenLog) { o.untyped = true }},
	}
}

func journalWriteMutants() []journalMutant {
	appending := func(o *overlapping, b *brokenLog, change func(ctx context.Context, tx *overTx, key journal.EntityKey, want journal.Expect, rows []journal.Row, rec journal.Recorded, err error) (journal.Recorded, error)) {
		b.append = func(ctx context.Context, tx *overTx, key journal.EntityKey, want journal.Expect, rows []journal.Row) (journal.Recorded, error) {
			rec, err := o.Append(ctx, tx, key, want, rows)
			return change(ctx, tx, key, want, rows, rec, err)
		}
	}
	return []journalMutant{
		{"append", "versions with holes where a transaction rolled back", func(o *overlapping, _ *brokenLog) { o.burn = true }},
		{"append", "a conflict writes all the same", func(o *overlapping, b *brokenLog) {
			appending(o, b, func(ctx context.Context, tx *overTx, key journal.EntityKey, _ journal.Expect, rows []journal.Row, rec journal.Recorded, err error) (journal.Recorded, error) {
				if err != nil {
					_, _ = o.Append(ctx, tx, key, journal.AnyVersion, rows)
				}
				return rec, err
			})
		}},
		{"append", "a conflict ends the transaction", func(o *overlapping, b *brokenLog) {
			appending(o, b, func(_ context.Context, tx *overTx, _ journal.EntityKey, _ journal.Expect, _ []journal.Row, rec journal.Recorded, err error) (journal.Recorded, error) {
				if err != nil {
					_ = tx.Rollback()
				}
				return rec, err
			})
		}},
		{"append", "a conflict does not say the version", func(o *overlapping, b *brokenLog) {
			appending(o, b, func(_ context.Context, _ *overTx, key journal.EntityKey, want journal.Expect, _ []journal.Row, rec journal.Recorded, err error) (journal.Recorded, error) {
				if errors.Is(err, journal.ErrConflict) {
					err = &journal.ConflictError{Key: key, Want: want}
				}
				return rec, err
			})
		}},
		{"append", "expects nothing", func(o *overlapping, b *brokenLog) {
			b.append = func(ctx context.Context, tx *overTx, key journal.EntityKey, _ journal.Expect, rows []journal.Row) (journal.Recorded, error) {
				return o.Append(ctx, tx, key, journal.AnyVersion, rows)
			}
		}},
		{"append", "seqs are answered backwards", func(o *overlapping, b *brokenLog) {
			appending(o, b, func(_ context.Context, _ *overTx, _ journal.EntityKey, _ journal.Expect, _ []journal.Row, rec journal.Recorded, err error) (journal.Recorded, error) {
				slices.Reverse(rec.Seqs)
				return rec, err
			})
		}},
		{"append", "time is the machine's", func(o *overlapping, b *brokenLog) {
			appending(o, b, func(_ context.Context, _ *overTx, _ journal.EntityKey, _ journal.Expect, _ []journal.Row, rec journal.Recorded, err error) (journal.Recorded, error) {
				rec.At = machineNow()
				return rec, err
			})
		}},
		{"append", "keeps the caller's bytes", func(o *overlapping, b *brokenLog) {
			b.append = func(ctx context.Context, tx *overTx, key journal.EntityKey, want journal.Expect, rows []journal.Row) (journal.Recorded, error) {
				rec, err := o.Append(ctx, tx, key, want, rows)
				for i := range rows {
					if err == nil {
						tx.rows[len(tx.rows)-len(rows)+i].Payload = rows[i].Payload
					}
				}
				return rec, err
			}
		}},
		{"record", "effect jobs are enqueued outside of the transaction", func(o *overlapping, b *brokenLog) {
			b.jobs = func() journal.Jobs[*overTx] { return directJobs{overJobs{o.queue, o}} }
		}},
		{"append", "a transaction that failed is committed", func(o *overlapping, b *brokenLog) {
			b.inTx = func(ctx context.Context, do func(context.Context, *overTx) error) error {
				tx := o.begin()
				return errors.Join(do(ctx, tx), tx.Commit())
			}
		}},
		{"append", "a transaction that failed is tried again", func(o *overlapping, b *brokenLog) {
			b.inTx = func(ctx context.Context, do func(context.Context, *overTx) error) error {
				if err := o.InTx(ctx, do); err == nil {
					return nil
				}
				return o.InTx(ctx, do)
			}
		}},
		{"append", "the transaction's error is not its cause", func(o *overlapping, b *brokenLog) {
			b.inTx = func(ctx context.Context, do func(context.Context, *overTx) error) error {
				if o.InTx(ctx, do) != nil {
					return errors.New("failed")
				}
				return nil
			}
		}},
		{"append", "ended contexts make no difference", func(o *overlapping, b *brokenLog) {
			b.readLog = func(ctx context.Context, f journal.Filter) ([]journal.Row, error) {
				return o.ReadLog(context.WithoutCancel(ctx), f)
			}
		}},
		{"announce", "announcements are lost", func(_ *overlapping, b *brokenLog) {
			b.announce = func(context.Context) error { return nil }
		}},
		{"announce", "announcements of transactions are lost", func(_ *overlapping, b *brokenLog) {
			b.announceIn = func(context.Context, *overTx) error { return nil }
		}},
		{"announce", "announcements do not wait for the commit", func(o *overlapping, b *brokenLog) {
			b.announceIn = func(ctx context.Context, _ *overTx) error { return o.Announce(ctx) }
		}},
		{"announce", "announcements are jobs", func(o *overlapping, b *brokenLog) {
			b.announce = func(ctx context.Context) error {
				_, err := o.queue.Enqueue(ctx, []core.EnqueueRequest{request("", onQueue(journal.WakeQueue))})
				return err
			}
		}},
	}
}

func journalReadMutants() []journalMutant {
	return []journalMutant{
		{"append", "payloads are JSON to it", func(_ *overlapping, b *brokenLog) {
			b.seen(func(r *journal.Row) {
				var v any
				if json.Unmarshal(r.Payload, &v) == nil {
					r.Payload, _ = json.Marshal(v)
				}
			})
		}},
		{"append", "metadata is lost", func(_ *overlapping, b *brokenLog) { b.seen(func(r *journal.Row) { r.Meta = nil }) }},
		{"append", "causation is lost", func(_ *overlapping, b *brokenLog) { b.seen(func(r *journal.Row) { r.Causation = 0 }) }},
		{"append", "schemas are lost", func(_ *overlapping, b *brokenLog) { b.seen(func(r *journal.Row) { r.Schema = 1 }) }},
		{"append", "times are local", func(_ *overlapping, b *brokenLog) {
			b.seen(func(r *journal.Row) { r.At = r.At.In(time.FixedZone("x", 3600)) })
		}},
		{"append", "events are seen before the commit", func(o *overlapping, _ *brokenLog) { o.dirty = true }},
		{"append", "a transaction does not see its own", func(o *overlapping, b *brokenLog) {
			b.readEntity = func(ctx context.Context, _ *overTx, key journal.EntityKey, after int64, limit int) ([]journal.Row, error) {
				return o.ReadEntity(ctx, nil, key, after, limit)
			}
		}},
		{"log", "an entity is its id", func(o *overlapping, b *brokenLog) {
			b.readEntity = func(_ context.Context, tx *overTx, key journal.EntityKey, after int64, limit int) ([]journal.Row, error) {
				o.mu.Lock()
				defer o.mu.Unlock()
				return copied(o.seen(tx), limit, func(r *journal.Row) bool { return r.Key.ID == key.ID && r.Version > after }), nil
			}
		}},
		{"log", "entities are told apart without case", func(o *overlapping, b *brokenLog) {
			b.readEntity = func(_ context.Context, tx *overTx, key journal.EntityKey, after int64, limit int) ([]journal.Row, error) {
				o.mu.Lock()
				defer o.mu.Unlock()
				return copied(o.seen(tx), limit, func(r *journal.Row) bool { return strings.EqualFold(r.Key.ID, key.ID) && r.Version > after }), nil
			}
		}},
		{"load", "an entity has 500 events at most", func(o *overlapping, b *brokenLog) {
			b.readEntity = func(ctx context.Context, tx *overTx, key journal.EntityKey, after int64, limit int) ([]journal.Row, error) {
				if after >= 500 {
					return nil, nil
				}
				return o.ReadEntity(ctx, tx, key, after, limit)
			}
		}},
		{"log", "an entity's pages are of any size", func(o *overlapping, b *brokenLog) {
			b.readEntity = func(_ context.Context, tx *overTx, key journal.EntityKey, after int64, limit int) (out []journal.Row, _ error) {
				o.mu.Lock()
				defer o.mu.Unlock()
				for _, r := range o.seen(tx) {
					if r.Key == key && r.Version > after && len(out) < limit {
						out = append(out, r.Row)
					}
				}
				return out, nil
			}
		}},
		{"log", "the newest are the oldest", func(_ *overlapping, b *brokenLog) { b.filtered(func(f *journal.Filter) { f.Newest = false }) }},
		{"log", "before is not heeded", func(_ *overlapping, b *brokenLog) { b.filtered(func(f *journal.Filter) { f.Before = 0 }) }},
		{"log", "types are not heeded", func(_ *overlapping, b *brokenLog) { b.filtered(func(f *journal.Filter) { f.Type = "" }) }},
		{"log", "since is not heeded", func(_ *overlapping, b *brokenLog) { b.filtered(func(f *journal.Filter) { f.Since = time.Time{} }) }},
		{"log", "correlations are not heeded", func(_ *overlapping, b *brokenLog) { b.filtered(func(f *journal.Filter) { f.Correlation = "" }) }},
		{"append", "the head is what was drawn", func(o *overlapping, b *brokenLog) {
			b.headed(func(h *journal.Head) {
				o.mu.Lock()
				defer o.mu.Unlock()
				h.Seq = o.seq
			})
		}},
		{"cursor", "the head's time is the machine's", func(_ *overlapping, b *brokenLog) {
			b.headed(func(h *journal.Head) { h.Now = machineNow() })
		}},
	}
}
