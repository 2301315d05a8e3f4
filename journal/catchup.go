package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stintmq/stint/core"
)

// CatchUp lets every async projection go on by one batch, in order of registration, and returns how many events were
// scanned in all. One that fails does not keep the others; the errors come joined. 0 and no error: all have caught up,
// are being moved by others, or wait out a failure.
func (j *Journal[Tx]) CatchUp(ctx context.Context) (int, error) {
	scanned := 0
	var errs []error
	for _, p := range j.declared(false) {
		if ctx.Err() != nil {
			break
		}
		n, err := j.step(ctx, p)
		scanned += n
		if err != nil {
			errs = append(errs, fmt.Errorf("journal: projection %s: %w", p.cursor(), err))
		}
	}
	return scanned, errors.Join(errs...)
}

// poison is an event that could not be applied.
type poison struct {
	row Row
	err error
	// alone: nothing that concerns the projection stands between the cursor, which was at from, and the event.
	alone bool
	from  int64
}

func (p *poison) Error() string { return fmt.Sprintf("event %d: %v", p.row.Seq, p.err) }
func (p *poison) Unwrap() error { return p.err }

// step is one batch of one projection, in one transaction (J7). An event that fails rolls all of it back. Then those
// before it are applied, and then it alone.
func (j *Journal[Tx]) step(ctx context.Context, p *Projection[Tx]) (int, error) {
	return j.batch(ctx, p, p.opts.Batch)
}

// batch scans up to limit events. What a database says of no event, such as at the commit, is looked for in batches half
// as large, until an event is alone with it.
func (j *Journal[Tx]) batch(ctx context.Context, p *Projection[Tx], limit int) (scanned int, err error) {
	var rows []Row
	var from int64
	late := false
	err = j.store.InTx(ctx, func(outer context.Context, tx Tx) (err error) {
		ctx, cancel := context.WithTimeout(outer, p.opts.Timeout)
		defer cancel()
		// Its end must not look like an event's fault, nor like success, whatever a function makes of it. By the clock, since
		// a connection may see the deadline before the context does.
		ends, _ := ctx.Deadline()
		defer func() {
			if late = !time.Now().Before(ends) && outer.Err() == nil; late {
				if !errors.Is(err, context.DeadlineExceeded) { // not every library says so
					err = errors.Join(context.DeadlineExceeded, err)
				}
				err = fmt.Errorf("the batch took longer than its Timeout, %v: %w", p.opts.Timeout, err)
			}
		}()
		scanned, rows = 0, nil
		c, ok, err := j.store.LockCursor(ctx, tx, p.cursor(), false)
		switch {
		case err != nil || !ok:
			return err
		case c.Inline:
			return &ModeError{p.cursor(), true}
		case c.RetryAt.After(c.Now):
			return nil
		}
		from = c.Seq
		page, err := j.store.ReadSettled(ctx, tx, from, limit)
		if err != nil || len(page) == 0 {
			return err
		}
		rows = upTo(page, c.FailedSeq)
		scanned, err = j.apply(ctx, tx, p, &c, rows)
		if err != nil {
			return err
		}
		rows = rows[:scanned]
		return j.store.SaveCursor(ctx, tx, c)
	})
	var bad *poison
	switch {
	case err == nil:
		if scanned > 0 {
			j.tell()
		}
		return scanned, nil
	case late || len(rows) == 0 || passing(ctx, err):
		return 0, err
	case errors.As(err, &bad):
	case len(rows) == 1:
		bad = &poison{row: rows[0], err: err}
	default:
		return j.batch(ctx, p, len(rows)/2)
	}
	bad.alone, bad.from = bad.row.Seq == rows[0].Seq, from
	return 0, j.failed(ctx, p, bad)
}

// upTo cuts a batch before the event that failed last, or behind it if it comes first.
func upTo(rows []Row, failed int64) []Row {
	if failed == 0 {
		return rows
	}
	for i := range rows {
		if rows[i].Seq == failed {
			return rows[:max(i, 1)]
		}
	}
	return rows
}

// passing reports whether an error says nothing of an event.
func passing(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, core.ErrRetryTx) || errors.Is(err, core.ErrUnavailable) || errors.Is(err, core.ErrUnknown)
}

// apply applies events and moves the cursor, which the caller saves. It returns how many events it passed.
func (j *Journal[Tx]) apply(ctx context.Context, tx Tx, p *Projection[Tx], c *Cursor, rows []Row) (int, error) {
	parked, err := j.parkedEntities(ctx, tx, c)
	if err != nil {
		return 0, err
	}
	began, n := time.Now(), 0
	// One guard for all of them: a goroutine per event would cost more than reading it.
	err = protect(func() error {
		for ; n < len(rows) && (n == 0 || time.Since(began) <= min(p.opts.Within, p.opts.Timeout/2)); n++ {
			if err := j.applyOne(ctx, tx, p, c, rows[n], parked); err != nil {
				return err
			}
		}
		return nil
	})
	if crash := (*crashError)(nil); errors.As(err, &crash) && n < len(rows) {
		err = &poison{row: rows[n], err: err}
	}
	return n, err
}

// applyOne applies an event, or parks it, and moves the cursor behind it.
func (j *Journal[Tx]) applyOne(ctx context.Context, tx Tx, p *Projection[Tx], c *Cursor, r Row, parked map[EntityKey]bool) error {
	if do := p.handler(&r.Header); do != nil {
		if parked[r.Key] {
			if err := j.park(ctx, tx, c, r, "waits behind an earlier event of its entity"); err != nil {
				return err
			}
		} else if err := do(ctx, tx, r); err != nil {
			return &poison{row: r, err: err}
		}
	}
	c.Seq = r.Seq
	if c.FailedSeq != 0 && c.Seq >= c.FailedSeq {
		c.recovered()
	}
	return nil
}

// recovered forgets a failure.
func (c *Cursor) recovered() {
	c.Failures, c.FailedSeq, c.LastError, c.RetryAt = 0, 0, "", time.Time{}
}

// failed records a failure in a transaction of its own, and does what the policy says.
func (j *Journal[Tx]) failed(ctx context.Context, p *Projection[Tx], bad *poison) error {
	err := j.store.InTx(ctx, func(ctx context.Context, tx Tx) error {
		c, _, err := j.store.LockCursor(ctx, tx, p.cursor(), true)
		if err != nil || c.Seq >= bad.row.Seq {
			return err // somebody else got past it
		}
		if c.FailedSeq != bad.row.Seq {
			c.Failures, c.FailedSeq = 0, bad.row.Seq
		}
		c.LastError = brief(bad.err)
		if !bad.alone || c.Seq != bad.from {
			c.RetryAt = c.Now // at once: those before it, and then it alone
			return j.store.SaveCursor(ctx, tx, c)
		}
		c.Failures++
		c.RetryAt = core.Micros(c.Now.Add(later(c.Failures)))
		if p.opts.OnError != Stall && c.Failures >= p.opts.Tries {
			if err := j.pass(ctx, tx, p, &c, bad); err != nil {
				return err
			}
		}
		return j.store.SaveCursor(ctx, tx, c)
	})
	if err == nil {
		j.tell() // it may have been passed
	}
	return errors.Join(bad, err)
}

// pass gets a projection past a poison event that was tried alone: those before it have been applied.
func (j *Journal[Tx]) pass(ctx context.Context, tx Tx, p *Projection[Tx], c *Cursor, bad *poison) error {
	if p.opts.OnError == ParkEntity {
		if err := j.park(ctx, tx, c, bad.row, c.LastError); err != nil {
			return err
		}
	} else if err := j.skip(ctx, tx, c, bad.row, c.LastError); err != nil {
		return err
	}
	j.opts.Logger.Error("journal: projection passes over an event", "projection", c.Name, "seq", bad.row.Seq,
		"policy", string(p.opts.OnError), "error", c.LastError)
	c.Seq = bad.row.Seq
	c.recovered()
	return nil
}

// brief is an error's text, cut to what a cursor should hold.
func brief(err error) string {
	const limit = 1000
	s := err.Error()
	if len(s) > limit {
		s = s[:limit] + "..."
	}
	return toValid(s)
}
