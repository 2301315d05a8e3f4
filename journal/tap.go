package journal

import (
	"context"
	"errors"
	"fmt"

	"github.com/stintmq/stint/core"
)

// tap is a declared listener.
type tap struct {
	name string
	def  *typeDef
	run  func(ctx context.Context, row Row) error
}

// Tap declares a function that every running worker calls for each event of the type that is recorded while it runs:
// in order of seq, once per worker, and never again (J10). What it returns, and a panic, is logged and otherwise
// nothing; events of a time when no worker ran are not seen. Taps read the log from where it ended when the worker first
// looked at it, behind its settled horizon (J9): a broken wake channel delays them, and loses none. That first look is in a
// worker's first Drain, after its effects and projections, or a moment after Run was called, on each Run anew: an event
// recorded right after "go w.Run(ctx)" may be missed. A transaction that was open at that look, and commits later, may
// have drawn its seqs before that end: these are not seen.
func Tap[P, Tx any](j *Journal[Tx], name string, r Ref[P], run func(context.Context, Event[P]) error) error {
	if r.def == nil || run == nil || name == "" {
		return &core.InvalidError{Field: "Tap", Reason: "needs a name, a declared type and a function"}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, t := range j.taps {
		if t.name == name {
			return &core.InvalidError{Field: "Tap", Reason: fmt.Sprintf("%q is declared twice", name)}
		}
	}
	j.taps = append(j.taps, &tap{name, r.def, func(ctx context.Context, row Row) error {
		ev, err := r.decode(row)
		if err != nil {
			return err
		}
		return run(ctx, ev)
	}})
	return nil
}

// tail reads the log on behalf of taps.
type tail[Tx any] struct {
	j     *Journal[Tx]
	begun bool
	after int64
}

// pass dispatches a page and returns how many events it had.
func (t *tail[Tx]) pass(ctx context.Context) (int, error) {
	if !t.begun {
		head, err := t.j.store.Head(ctx)
		if err != nil {
			return 0, err
		}
		t.begun, t.after = true, head.Seq
	}
	var rows []Row
	err := t.j.store.InTx(ctx, func(ctx context.Context, tx Tx) (err error) {
		rows, err = t.j.store.ReadSettled(ctx, tx, t.after, pageSize)
		return err
	})
	if errors.Is(err, ErrAhead) {
		t.begun = false // a standby took over that lacked the last events: they are gone, and so are their seqs
	}
	if err != nil {
		return 0, err
	}
	t.j.mu.RLock()
	taps := t.j.taps
	t.j.mu.RUnlock()
	for i, r := range rows {
		if ctx.Err() != nil {
			return i, nil // taps are told of no more once the worker stops
		}
		for _, tap := range taps {
			if !tap.def.matches(&r.Header) {
				continue
			}
			if err := protect(func() error { return tap.run(ctx, r) }); err != nil {
				t.j.opts.Logger.Error("journal: tap failed", "tap", tap.name, "seq", r.Seq, "error", err)
			}
		}
		t.after = r.Seq
	}
	return len(rows), nil
}

// crashError: user code did not return.
type crashError struct{ how string }

func (e *crashError) Error() string { return "journal: " + e.how }

// protect runs user code where a panic or runtime.Goexit is an error.
func protect(f func() error) error {
	done := make(chan error, 1)
	go func() {
		var err error = &crashError{"runtime.Goexit was called"}
		defer func() {
			if v := recover(); v != nil {
				err = &crashError{fmt.Sprintf("panic of type %T: %v", v, v)}
			}
			done <- err
		}()
		err = f()
	}()
	return <-done
}
