package journal

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/stintmq/stint/core"
)

// Journal records events in transactions of type Tx, and knows who reacts to them. Safe for concurrent use.
//
// Declare effects, projections and taps before the first Record and the first Worker; what is declared later sees later
// events only.
type Journal[Tx any] struct {
	*shared[Tx]
	correlation string // of what is recorded; "": a new one each time
	causation   int64
}

// shared is what a journal and those that Caused and Correlated return have in common.
type shared[Tx any] struct {
	store Store[Tx]
	jobs  Jobs[Tx]
	opts  Options

	mu          sync.RWMutex
	effects     map[string]*effect[Tx]
	projections []*Projection[Tx] // in order of registration
	taps        []*tap
	made        map[string]bool // inline projections whose cursor is known to be there
	claimed     map[string]bool // those for which this process made one, in a transaction that may not have committed
	waited      atomic.Int64    // runs of ordered effects that were not due in their order
	draining    atomic.Int32    // workers that drain
	moved       chan struct{}   // closed, and replaced, when a batch has been committed here
}

// Options of New. The zero value is good.
type Options struct {
	Limits core.Limits  // of payloads; zero: 1 MiB
	Logger *slog.Logger // nil: discard. Payloads are never logged
	// AnnounceTx has Record wake readers by the commit of the caller's transaction too. Without it they find what is
	// recorded there by polling, unless Announce is called after the commit; transactions of Do and InTx announce
	// theirs in any case. On Postgres it costs a NOTIFY per transaction, of which a cluster does few at once (J12).
	AnnounceTx bool
}

// New returns a journal on a store; a driver's Journal method makes that.
func New[Tx any](store Store[Tx], opts Options) (*Journal[Tx], error) {
	if store == nil {
		return nil, &core.InvalidError{Field: "Store", Reason: "must not be nil"}
	}
	if err := opts.Limits.Validate(); err != nil {
		return nil, err
	}
	if opts.Limits.Payload == 0 {
		opts.Limits.Payload = core.DefaultPayload
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return &Journal[Tx]{shared: &shared[Tx]{
		store: store, jobs: store.Jobs(), opts: opts, effects: make(map[string]*effect[Tx]),
		made: make(map[string]bool), claimed: make(map[string]bool), moved: make(chan struct{}),
	}}, nil
}

// Correlated returns the journal with a correlation id for all that it records.
func (j *Journal[Tx]) Correlated(id string) *Journal[Tx] {
	return &Journal[Tx]{j.shared, id, j.causation}
}

// Caused returns the journal with what it records caused by an event: its correlation, and its seq as the causation
// (J3). Effects are handed one.
func (j *Journal[Tx]) Caused(by Header) *Journal[Tx] {
	return &Journal[Tx]{j.shared, by.Correlation, by.Seq}
}

// InTx runs do in a transaction of its own, once, and then wakes those who wait for events. Transact and Do also repeat
// what wraps core.ErrRetryTx or ErrConflict.
func (j *Journal[Tx]) InTx(ctx context.Context, do func(ctx context.Context, tx Tx) error) error {
	if err := given("do", do != nil); err != nil {
		return err
	}
	if err := j.store.InTx(ctx, do); err != nil {
		return err
	}
	j.Announce(ctx)
	return nil
}

// Announce wakes those who wait for events, after the commit of a transaction of the caller's. It is a hint: a failure
// is logged, and they poll.
func (j *Journal[Tx]) Announce(ctx context.Context) {
	j.confirmInline(ctx)
	if err := j.store.Announce(ctx); err != nil {
		j.opts.Logger.Warn("journal: readers were not told of events, and will find them by polling", "error", err)
	}
}

// Record appends events to an entity in the caller's transaction, at one moment with an effect job for each effect
// that hears one, and what inline projections write (J1). If the entity's version is not as expected it is a
// *ConflictError and nothing was written; what is invalid is refused before anything is sent. After any other error the
// transaction must be rolled back.
//
// Two transactions that record for several entities should take these in the same order, or one of them deadlocks.
func (j *Journal[Tx]) Record(ctx context.Context, tx Tx, key EntityKey, want Expect, drafts ...Draft) (Recorded, error) {
	rec, _, err := j.record(ctx, tx, key, want, drafts)
	return rec, err
}

// record also returns the events as they were stored.
func (j *Journal[Tx]) record(ctx context.Context, tx Tx, key EntityKey, want Expect, drafts []Draft) (Recorded, []Row, error) {
	rows, err := j.rows(key, want, drafts)
	if err != nil {
		return Recorded{}, nil, err
	}
	rec, err := j.store.Append(ctx, tx, key, want, rows)
	if err != nil {
		return Recorded{}, nil, err
	}
	for i := range rows {
		rows[i].Seq, rows[i].Key, rows[i].At = rec.Seqs[i], key, rec.At
		rows[i].Version = rec.Version - int64(len(rows)-1-i)
	}
	if err := j.enqueue(ctx, tx, rows); err != nil {
		return Recorded{}, nil, err
	}
	if err := j.inline(ctx, tx, rows); err != nil {
		return Recorded{}, nil, err
	}
	if j.opts.AnnounceTx {
		if err := j.store.AnnounceIn(ctx, tx); err != nil {
			return Recorded{}, nil, err
		}
	}
	return rec, rows, nil
}

// What bounds one Record.
const (
	MaxEvents      = 1000
	MaxRecordBytes = core.MaxPayload // payloads and metadata together
)

// rows checks and encodes drafts.
func (j *Journal[Tx]) rows(key EntityKey, want Expect, drafts []Draft) ([]Row, error) {
	if err := key.validate(); err != nil {
		return nil, err
	}
	if want < AnyVersion {
		return nil, &core.InvalidError{Field: "Expect", Reason: "must be a version, NoEntity or AnyVersion"}
	}
	if len(drafts) == 0 || len(drafts) > MaxEvents {
		return nil, &core.InvalidError{Field: "Drafts", Reason: fmt.Sprintf("must be 1 to %d events", MaxEvents)}
	}
	correlation := j.correlation
	if correlation == "" {
		correlation = core.NewToken()
	}
	if err := validText("Correlation", correlation); err != nil {
		return nil, err
	}
	rows, bytes := make([]Row, len(drafts)), 0
	for i, d := range drafts {
		if d.def == nil || d.def.kind != key.Kind {
			return nil, &core.InvalidError{Field: "Drafts", Reason: fmt.Sprintf("event %d is of no type that %q declares", i, key.Kind)}
		}
		data, err := j.encode(key, d)
		if err != nil {
			return nil, err
		}
		bytes += len(data)
		for k, v := range d.meta {
			bytes += len(k) + len(v)
		}
		if bytes > MaxRecordBytes {
			return nil, &core.InvalidError{Field: "Drafts", Reason: fmt.Sprintf("have more than %d bytes", MaxRecordBytes)}
		}
		rows[i] = Row{Payload: data, Header: Header{
			Type: d.def.name, Schema: d.def.schema, Correlation: correlation, Causation: j.causation, Meta: maps.Clone(d.meta),
		}}
	}
	return rows, nil
}

func validText(field, s string) error {
	if !utf8.ValidString(s) || len(s) > core.MaxKeyBytes {
		return &core.InvalidError{Field: field, Reason: fmt.Sprintf("must be valid UTF-8 of at most %d bytes", core.MaxKeyBytes)}
	}
	for _, c := range s {
		if c < 0x20 || c >= 0x7f && c <= 0x9f {
			return &core.InvalidError{Field: field, Reason: fmt.Sprintf("contains the control character %U", c)}
		}
	}
	return nil
}

// History returns committed events, for people: it does not wait for those that are on their way (J9).
func (j *Journal[Tx]) History(ctx context.Context, f Filter) ([]Row, error) {
	if f.Limit < 0 || f.Limit > 1000 {
		return nil, &core.InvalidError{Field: "Limit", Reason: "must be 0 to 1000"}
	}
	if f.Limit == 0 {
		f.Limit = 100
	}
	return j.store.ReadLog(ctx, f)
}

// Log is History without a limit: it reads page by page, and ends with the first error. Filter.Limit is a page's.
func (j *Journal[Tx]) Log(ctx context.Context, f Filter) iter.Seq2[Row, error] {
	if f.Limit == 0 {
		f.Limit = pageSize
	}
	return func(yield func(Row, error) bool) {
		for {
			rows, err := j.History(ctx, f)
			if err != nil {
				yield(Row{}, err)
				return
			}
			for _, r := range rows {
				if !yield(r, nil) {
					return
				}
				if f.Newest {
					f.Before = r.Seq
				} else {
					f.After = r.Seq
				}
			}
			if len(rows) < f.Limit {
				return
			}
		}
	}
}

// names lists the keys of a map, sorted.
func names[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// later is when a thing that failed n times in a row is due again: 1 s doubling to 5 min.
func later(n int) time.Duration {
	return core.Exponential(time.Second, 2, 5*time.Minute).Delay(max(n, 1))
}
