// Package pgsql is the queue contract in Postgres's SQL: every statement once, beside its scan.
//
// It knows no driver. Whoever calls it lends an Executor on one connection. What a call must do at one moment is one
// statement wherever it can be: such a call needs no transaction, and holds no lock while anybody waits for anybody.
//
// Arguments are strings, numbers, bools, times, []byte, nil, and slices of these; every parameter is cast where it
// stands, so a driver never guesses.
package pgsql

import (
	"fmt"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/sqlexec"
)

// Session is the contract on one connection. It serves one call and is not safe for concurrent use.
type Session struct {
	x      sqlexec.Executor
	now    any // the injected time, or nil: the database's
	limits core.Limits
	tx     bool // inside the caller's transaction
	whole  bool // inside one transaction, whoever's

	marks *Marks
	woken map[string]News // by queue; "" for cancel requests
	told  bool            // by the statements themselves

	laneless bool                  // a job was inserted on a lane that is not there
	strayed  []core.EnqueueRequest // queues and priorities of the lanes that a replace led to and that are not there
}

// NewSession returns a session. A clock of nil is the database's own.
func NewSession(x sqlexec.Executor, clock core.Clock, limits core.Limits) *Session {
	s := &Session{x: x, limits: limits, woken: make(map[string]News)}
	if clock != nil {
		s.now = core.Micros(clock.Now())
	}
	return s
}

// InTx makes it a session inside a transaction of the caller's: locks are waited for, since that transaction
// holds them as well as any other.
func (s *Session) InTx() *Session {
	s.tx, s.whole = true, true
	return s
}

// Whole makes it a session inside one transaction of the store's own: what fails leaves nothing behind.
func (s *Session) Whole() *Session {
	s.whole = true
	return s
}

// partly is the error of a call of which something was done already, by statements that are committed.
func (s *Session) partly(err error) error {
	if s.whole {
		return err
	}
	return fmt.Errorf("%w: %w", core.ErrUnknown, err)
}

// WithMarks lets claims skip what is known to be dead.
func (s *Session) WithMarks(m *Marks) *Session {
	s.marks = m
	return s
}

// Woken are the news once what the session did is committed; queue "" stands for cancel requests.
func (s *Session) Woken() []News {
	news := make([]News, 0, len(s.woken))
	for _, n := range s.woken {
		news = append(news, n)
	}
	return news
}

// Told reports whether the statements that made the news notified of it themselves.
func (s *Session) Told() bool { return s.told }

// Laneless reports whether jobs were inserted on a lane that the database has not, or no longer: a standby that took
// over lacks the last commits, a backup those since. Nobody claims there before the lane is made again.
func (s *Session) Laneless() bool { return s.laneless }

// Strayed are lanes that are not there, beside those of what was asked for: of jobs whose content
// was replaced in the caller's transaction.
func (s *Session) Strayed() []core.EnqueueRequest { return s.strayed }

// control stands for cancel requests where queues are named: no queue has an empty name.
const control = ""

func (s *Session) wake(n News) { Merge(s.woken, n) }

// The store's time is one moment per statement: $1, else the database's. moment is for what is written: a
// statement that waited must not hand out what is old already. The index conditions of sweeps take since, which
// does not change while a statement runs.
//
// Durations are microseconds. They become intervals in two parts, seconds and the rest: Postgres multiplies intervals
// by floats, which do not hold 290 years of microseconds to the last one.
const (
	moment = `t as materialized (select coalesce($1::timestamptz, clock_timestamp()) as now)`
	since  = `coalesce($1::timestamptz, statement_timestamp())`
)

// The states as stored. What is pending is told by its table.
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

// utc is a stored time, or none.
func utc(at *time.Time) time.Time {
	if at == nil {
		return time.Time{}
	}
	return at.UTC()
}

// Settings are what a connection of the store's own must have, whatever the database or its role says: transactions are
// READ COMMITTED, on which all statements count, a claim that was answered outlives the server (Q4), and values are written
// as every library reads them.
const Settings = `select set_config(name, case name when 'synchronous_commit' then 'on' when 'bytea_output' then 'hex' when 'DateStyle' then 'ISO'
		else 'read committed' end, false)
	from pg_settings
	where name = 'default_transaction_isolation' and setting <> 'read committed' or name = 'synchronous_commit' and setting = 'off'
		or name = 'bytea_output' and setting <> 'hex' or name = 'DateStyle' and setting not like 'ISO%'`
