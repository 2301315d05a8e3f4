// Package litesql is the queue contract in SQLite's SQL: every statement once, beside its scan.
//
// It knows no driver. Whoever calls it lends an Executor inside one transaction that holds SQLite's write lock
// (or, for the readers, one that sees a single snapshot), and commits or rolls back.
package litesql

import (
	"context"
	"encoding/json"
	"sort"
	"strconv"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/sqlexec"
)

// Session is the contract inside one transaction. It serves one call and is not safe for concurrent use.
type Session struct {
	x      sqlexec.Executor
	now    int64 // microseconds: one moment for the whole call
	limits core.Limits

	woken map[string]struct{} // queues with news, "" for cancel requests
}

// NewSession returns a session at a moment of the store's clock. For writers the moment was read after the
// write lock was taken: a call that waited must not hand out leases that are old already.
func NewSession(x sqlexec.Executor, now time.Time, limits core.Limits) *Session {
	return &Session{x: x, now: now.UnixMicro(), limits: limits, woken: make(map[string]struct{})}
}

// Woken are the queues that have news once the transaction is committed; "" stands for cancel requests.
func (s *Session) Woken() []string {
	queues := make([]string, 0, len(s.woken))
	for q := range s.woken {
		queues = append(queues, q)
	}
	sort.Strings(queues)
	return queues
}

// control stands for cancel requests where queues are named: no queue has an empty name.
const control = ""

func (s *Session) wake(queue string) { s.woken[queue] = struct{}{} }

const (
	sqlTick     = `select tick from stint_counter`
	sqlTake     = `update stint_counter set tick = tick + ? returning tick`
	sqlWake     = `insert into stint_wake (queue, at) values (?, ?) on conflict (queue) do update set at = excluded.at`
	sqlNews     = `select tick, queue, at from stint_counter left join stint_wake on at > ?`
	sqlLockTake = `update stint_counter set tick = tick where one = 1`
)

// take draws n numbers that nobody drew before and returns the first.
func (s *Session) take(ctx context.Context, n int) (int64, error) {
	var last int64
	_, err := sqlexec.One(ctx, s.x, []any{&last}, sqlTake, n)
	return last - int64(n) + 1, err
}

// flush writes down which queues have news, as the last thing that a writer does. A waiter's token is a tick,
// and this one is later than all that were handed out.
func (s *Session) flush(ctx context.Context) error {
	if len(s.woken) == 0 {
		return nil
	}
	at, err := s.take(ctx, 1)
	if err != nil {
		return err
	}
	for _, q := range s.Woken() {
		if _, err := s.x.Exec(ctx, sqlWake, q, at); err != nil {
			return err
		}
	}
	return nil
}

// tick is the moment that the next wake will be later than.
func (s *Session) tick(ctx context.Context) (int64, error) {
	var tick int64
	_, err := sqlexec.One(ctx, s.x, []any{&tick}, sqlTick)
	return tick, err
}

// News returns what was woken after a tick, "" for cancel requests, and the moment up to which that is all.
func (s *Session) News(ctx context.Context, after int64) (last map[string]int64, tick int64, err error) {
	last = map[string]int64{}
	err = sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) error {
		var queue *string
		var at *int64
		if err := r.Scan(&tick, &queue, &at); err != nil || queue == nil {
			return err
		}
		last[*queue] = *at
		return nil
	}, sqlNews, after)
	return last, tick, err
}

// Lock takes SQLite's write lock where the transaction began without it: the first statement of a transaction
// waits for the lock like BEGIN IMMEDIATE, one after a read fails at once.
func Lock(ctx context.Context, x sqlexec.Executor) error {
	_, err := x.Exec(ctx, sqlLockTake)
	return err
}

// The states as stored.
const (
	waiting   = 1
	delayed   = 2
	active    = 3
	completed = 5
	failed    = 6
	cancelled = 7
)

func stateName(code int64) core.State {
	states := core.States()
	if code < 1 || int(code) > len(states) {
		return ""
	}
	return states[code-1]
}

func stateCode(s core.State) int64 {
	for i, name := range core.States() {
		if s == name {
			return int64(i + 1)
		}
	}
	return 0
}

// micros is a duration in microseconds, rounded up: nothing is due a moment early.
func micros(d time.Duration) int64 {
	us := int64(d / time.Microsecond)
	if d%time.Microsecond > 0 {
		us++
	}
	return us
}

// moment is a stored time, or none.
func moment(at *int64) time.Time {
	if at == nil {
		return time.Time{}
	}
	return time.UnixMicro(*at).UTC()
}

// numbers is a JSON array: the one way to hand SQLite a list in one argument.
func numbers(list []int64) string {
	b := make([]byte, 0, 2+len(list)*8)
	b = append(b, '[')
	for i, n := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, n, 10)
	}
	return string(append(b, ']'))
}

// texts is a JSON array of strings, which the caller knows to be valid UTF-8.
func texts[T any](list []T) (string, error) {
	b, err := json.Marshal(list)
	return string(b), err
}
