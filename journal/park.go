package journal

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// The spaces of notes that belong to a cursor.
const (
	parkedSpace  = "parked/"
	skippedSpace = "skipped/"
)

// Aside is an event that a projection put aside.
type Aside struct {
	Key   EntityKey `json:"-"`
	Seq   int64     `json:"seq"`
	Error string    `json:"error"`
	At    time.Time `json:"at"`

	Kind string `json:"kind"`
	ID   string `json:"id"`
}

// separator stands between an entity and a seq in the key of a note; no entity's name has it.
const separator = "\x1f"

func parkedKey(k EntityKey, seq int64) string { return k.String() + separator + digits(seq) }

// digits sorts as the number does.
func digits(seq int64) string { return fmt.Sprintf("%019d", seq) }

func (j *Journal[Tx]) aside(ctx context.Context, tx Tx, space, key string, c *Cursor, r Row, why string) error {
	value, err := json.Marshal(Aside{Seq: r.Seq, Error: why, At: c.Now, Kind: r.Key.Kind, ID: r.Key.ID})
	if err != nil {
		return err
	}
	return j.store.PutNote(ctx, tx, Note{space + c.Name, key, value})
}

// park puts an event aside, to be applied before any later one of its entity.
func (j *Journal[Tx]) park(ctx context.Context, tx Tx, c *Cursor, r Row, why string) error {
	c.Parked++
	return j.aside(ctx, tx, parkedSpace, parkedKey(r.Key, r.Seq), c, r, why)
}

// skip records an event that is never applied.
func (j *Journal[Tx]) skip(ctx context.Context, tx Tx, c *Cursor, r Row, why string) error {
	return j.aside(ctx, tx, skippedSpace, digits(r.Seq), c, r, why)
}

// parkedEntities returns the entities whose events wait.
func (j *Journal[Tx]) parkedEntities(ctx context.Context, tx Tx, c *Cursor) (map[EntityKey]bool, error) {
	if c.Parked == 0 {
		return nil, nil
	}
	found := make(map[EntityKey]bool)
	after := ""
	for {
		// One note of each entity is enough: go on behind all of its others.
		notes, err := j.store.Notes(ctx, tx, parkedSpace+c.Name, "", after, 1)
		if err != nil || len(notes) == 0 {
			return found, err
		}
		a, err := readAside(notes[0])
		if err != nil {
			return nil, err
		}
		found[a.Key] = true
		after = a.Key.String() + separator + strings.Repeat("9", 20)
	}
}

func readAside(n Note) (Aside, error) {
	var a Aside
	if err := json.Unmarshal(n.Value, &a); err != nil {
		return a, fmt.Errorf("journal: note %s %q: %w", n.Space, n.Key, err)
	}
	a.Key = EntityKey{a.Kind, a.ID}
	return a, nil
}

// Parked lists events that a projection put aside, by entity, then in order; up to limit, 0: 100.
func (j *Journal[Tx]) Parked(ctx context.Context, projection string, limit int) ([]Aside, error) {
	return j.asides(ctx, parkedSpace, projection, limit)
}

// Skipped lists events that a projection passed over, in order; up to limit, 0: 100.
func (j *Journal[Tx]) Skipped(ctx context.Context, projection string, limit int) ([]Aside, error) {
	return j.asides(ctx, skippedSpace, projection, limit)
}

func (j *Journal[Tx]) asides(ctx context.Context, space, projection string, limit int) ([]Aside, error) {
	p, err := j.projection(projection)
	if err != nil {
		return nil, err
	}
	if limit <= 0 {
		limit = 100
	}
	var out []Aside
	err = j.store.InTx(ctx, func(ctx context.Context, tx Tx) error {
		out = nil
		notes, err := j.store.Notes(ctx, tx, space+p.cursor(), "", "", limit)
		for _, n := range notes {
			a, err := readAside(n)
			if err != nil {
				return err
			}
			out = append(out, a)
		}
		return err
	})
	return out, err
}

// Replay applies the parked events of an entity in order, in one transaction, and returns how many; if one fails, none
// is. Later events of the entity then go their way again. Of a projection that was made inline, or retired, it is a
// *ModeError.
func (j *Journal[Tx]) Replay(ctx context.Context, projection string, key EntityKey) (int, error) {
	return j.unpark(ctx, projection, key, func(ctx context.Context, tx Tx, p *Projection[Tx], seq int64) error {
		rows, err := j.store.ReadSettled(ctx, tx, seq-1, 1) // parked, and so settled
		if err != nil {
			return err
		}
		if len(rows) == 0 || rows[0].Seq != seq {
			return fmt.Errorf("journal: event %d is not there", seq)
		}
		if do := p.handler(&rows[0].Header); do != nil {
			return protect(func() error { return do(ctx, tx, rows[0]) })
		}
		return nil
	})
}

// Discard drops the parked events of an entity, and returns how many: they are never applied.
func (j *Journal[Tx]) Discard(ctx context.Context, projection string, key EntityKey) (int, error) {
	return j.unpark(ctx, projection, key, func(context.Context, Tx, *Projection[Tx], int64) error { return nil })
}

func (j *Journal[Tx]) unpark(ctx context.Context, projection string, key EntityKey,
	each func(context.Context, Tx, *Projection[Tx], int64) error,
) (int, error) {
	p, err := j.projection(projection)
	if err != nil {
		return 0, err
	}
	n := 0
	err = j.store.InTx(ctx, func(ctx context.Context, tx Tx) error {
		n = 0
		c, _, err := j.store.LockCursor(ctx, tx, p.cursor(), true)
		if err != nil {
			return err
		}
		if c.Inline {
			return &ModeError{c.Name, true}
		}
		space := parkedSpace + c.Name
		for {
			notes, err := j.store.Notes(ctx, tx, space, key.String()+separator, "", pageSize)
			if err != nil {
				return err
			}
			for _, note := range notes {
				a, err := readAside(note)
				if err != nil {
					return err
				}
				if err := each(ctx, tx, p, a.Seq); err != nil {
					return fmt.Errorf("journal: projection %s: event %d: %w", c.Name, a.Seq, err)
				}
				if _, err := j.store.DeleteNote(ctx, tx, space, note.Key); err != nil {
					return err
				}
				n++
			}
			if len(notes) < pageSize {
				break
			}
		}
		c.Parked -= int64(n)
		return j.store.SaveCursor(ctx, tx, c)
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

func toValid(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
