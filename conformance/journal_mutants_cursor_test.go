package conformance

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/stintmq/stint/journal"
)

func journalCursorMutants() []journalMutant {
	locking := func(b *brokenLog, change func(*journal.Cursor, *bool)) {
		b.lockCursor = func(ctx context.Context, tx *overTx, name string, wait bool) (journal.Cursor, bool, error) {
			c, ok, err := b.Store.LockCursor(ctx, tx, name, wait)
			change(&c, &ok)
			return c, ok, err
		}
	}
	return []journalMutant{
		{"cursor", "cursors are saved outside of the transaction", func(o *overlapping, _ *brokenLog) { o.saveOutside = true }},
		{"projection", "cursors are saved outside of the transaction, and a projection fails", func(o *overlapping, b *brokenLog) {
			b.saveCursor = func(ctx context.Context, tx *overTx, c journal.Cursor) error {
				o.mu.Lock()
				o.cursors[c.Name] = c
				o.mu.Unlock()
				return nil
			}
		}},
		{"cursor", "cursors are never locked", func(o *overlapping, _ *brokenLog) { o.lockless["c"] = true }},
		{"projection", "cursors are never locked, and many workers", func(o *overlapping, _ *brokenLog) { o.lockless["c"] = true }},
		{"cursor", "cursors are always busy", func(_ *overlapping, b *brokenLog) { locking(b, func(_ *journal.Cursor, ok *bool) { *ok = false }) }},
		{"cursor", "a busy cursor is waited for", func(o *overlapping, b *brokenLog) {
			b.lockCursor = func(ctx context.Context, tx *overTx, name string, _ bool) (journal.Cursor, bool, error) {
				return o.LockCursor(ctx, tx, name, true)
			}
		}},
		{"cursor", "a cursor that is being made is waited for", func(o *overlapping, b *brokenLog) {
			b.lockCursor = func(ctx context.Context, tx *overTx, name string, wait bool) (journal.Cursor, bool, error) {
				o.mu.Lock()
				_, made := o.cursors[name]
				o.mu.Unlock()
				return o.LockCursor(ctx, tx, name, wait || !made)
			}
		}},
		{"cursor", "nobody waits for a cursor", func(o *overlapping, b *brokenLog) {
			b.lockCursor = func(ctx context.Context, tx *overTx, name string, _ bool) (journal.Cursor, bool, error) {
				return o.LockCursor(ctx, tx, name, false)
			}
		}},
		{"cursor", "the time of a cursor is the machine's", func(_ *overlapping, b *brokenLog) {
			locking(b, func(c *journal.Cursor, _ *bool) { c.Now = machineNow() })
		}},
		{"cursor", "errors are lost", func(_ *overlapping, b *brokenLog) { b.saved(func(c *journal.Cursor) { c.LastError = "" }) }},
		{"poison", "pauses are lost", func(_ *overlapping, b *brokenLog) { b.saved(func(c *journal.Cursor) { c.RetryAt = time.Time{} }) }},
		{"poison", "failures are lost", func(_ *overlapping, b *brokenLog) { b.saved(func(c *journal.Cursor) { c.Failures = 0 }) }},
		{"poison", "where it failed is lost", func(_ *overlapping, b *brokenLog) { b.saved(func(c *journal.Cursor) { c.FailedSeq = 0 }) }},
		{"park", "what is parked is not counted", func(_ *overlapping, b *brokenLog) { b.saved(func(c *journal.Cursor) { c.Parked = 0 }) }},
		{"inline", "modes are lost", func(_ *overlapping, b *brokenLog) { b.saved(func(c *journal.Cursor) { c.Inline = false }) }},
		{"projection", "versions of a projection share a cursor", func(o *overlapping, b *brokenLog) {
			b.lockCursor = func(ctx context.Context, tx *overTx, name string, wait bool) (journal.Cursor, bool, error) {
				name, _, _ = strings.Cut(name, "@")
				return o.LockCursor(ctx, tx, name, wait)
			}
		}},
		{"cursor", "a cursor does not go back", func(o *overlapping, b *brokenLog) {
			b.saveCursor = func(ctx context.Context, tx *overTx, c journal.Cursor) error {
				o.mu.Lock()
				c.Seq = max(c.Seq, o.cursors[c.Name].Seq)
				o.mu.Unlock()
				return o.SaveCursor(ctx, tx, c)
			}
		}},
	}
}

func journalNoteMutants() []journalMutant {
	sorting := func(b *brokenLog, compare func(a, b journal.Note) int) {
		b.notes = func(ctx context.Context, tx *overTx, space, prefix, after string, limit int) ([]journal.Note, error) {
			all, err := b.Store.Notes(ctx, tx, space, prefix, after, 1<<30)
			slices.SortStableFunc(all, compare)
			return all[:min(limit, len(all))], err
		}
	}
	return []journalMutant{
		{"notes", "notes come backwards", func(_ *overlapping, b *brokenLog) {
			sorting(b, func(a, b journal.Note) int { return strings.Compare(b.Key, a.Key) })
		}},
		{"notes", "notes are ordered without case", func(_ *overlapping, b *brokenLog) {
			sorting(b, func(a, b journal.Note) int { return strings.Compare(strings.ToLower(a.Key), strings.ToLower(b.Key)) })
		}},
		{"notes", "notes are found from a key on", func(o *overlapping, b *brokenLog) {
			b.notes = func(ctx context.Context, tx *overTx, space, prefix, after string, limit int) ([]journal.Note, error) {
				all, err := o.Notes(ctx, tx, space, prefix, "", 1<<30)
				all = slices.DeleteFunc(all, func(n journal.Note) bool { return n.Key < after })
				return all[:min(limit, len(all))], err
			}
		}},
		{"notes", "prefixes are patterns", func(o *overlapping, b *brokenLog) {
			b.notes = func(ctx context.Context, tx *overTx, space, prefix, after string, limit int) ([]journal.Note, error) {
				literal, _, _ := strings.Cut(prefix, "%")
				return o.Notes(ctx, tx, space, literal, after, limit)
			}
		}},
		{"notes", "spaces are prefixes", func(o *overlapping, b *brokenLog) {
			b.notes = func(ctx context.Context, tx *overTx, space, prefix, after string, limit int) ([]journal.Note, error) {
				for _, s := range []string{space, space + "1"} {
					if all, err := o.Notes(ctx, tx, s, prefix, after, limit); err != nil || len(all) > 0 {
						return all, err
					}
				}
				return nil, nil
			}
		}},
		{"notes", "an empty note is none", func(o *overlapping, b *brokenLog) {
			b.putNote = func(ctx context.Context, tx *overTx, n journal.Note) error {
				if len(n.Value) == 0 {
					return nil
				}
				return o.PutNote(ctx, tx, n)
			}
		}},
		{"notes", "notes are written outside of the transaction", func(o *overlapping, b *brokenLog) {
			b.putNote = func(ctx context.Context, _ *overTx, n journal.Note) error {
				return o.InTx(ctx, func(ctx context.Context, tx *overTx) error { return o.PutNote(ctx, tx, n) })
			}
		}},
		{"notes", "there was always one to delete", func(o *overlapping, b *brokenLog) {
			b.deleteNote = func(ctx context.Context, tx *overTx, space, key string) (bool, error) {
				_, err := o.DeleteNote(ctx, tx, space, key)
				return true, err
			}
		}},
		{"park", "later events of a parked entity go through", func(o *overlapping, b *brokenLog) {
			b.notes = func(ctx context.Context, tx *overTx, space, prefix, after string, limit int) ([]journal.Note, error) {
				if strings.HasPrefix(space, "parked/") && limit == 1 {
					return nil, nil
				}
				return o.Notes(ctx, tx, space, prefix, after, limit)
			}
		}},
		{"reset", "notes cannot be deleted", func(_ *overlapping, b *brokenLog) {
			b.deleteNote = func(context.Context, *overTx, string, string) (bool, error) { return true, nil }
		}},
	}
}
