package robust_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/faults"
	"github.com/stintmq/stint/internal/pgtest"
)

// slotsKey is the schedule that the tests here have, with a slot every second.
const slotsKey = "every second"

// TestSlotsOnce: worker processes plan a schedule of which each slot has to run, while some of them are killed, and while
// the statements of ticks fail before and after they are carried out. Each slot is one job, none is missing and none is
// made twice: its job is removed as soon as it finished, so that no id stands in the way of another one (Q26).
func TestSlotsOnce(t *testing.T) {
	t.Parallel()
	eachDriver(t, func(t *testing.T, d driver) {
		e := sharedEnv(t, d)
		c := newCrew(e, "", d.size(8, 3, 8))
		c.slots(d.size(6, 4, 60), func(int) {})
	})
}

// TestSlotsThroughCrashes is the long form: on a server that crashes as well, with clocks of the workers that are two
// hours ahead and behind.
func TestSlotsThroughCrashes(t *testing.T) {
	t.Parallel()
	drivers := drivers()[:size(1, len(drivers()))]
	server := pgtest.Start(t, pgtest.Options{Durable: true})
	exe := ""
	if size(0, 1) == 1 {
		exe = skewed(t)
	}
	for _, d := range drivers {
		t.Run(d.name, func(t *testing.T) {
			e := newEnv(t, d, targetOf(t, server.DSN()))
			c := newCrew(e, exe, size(2, 8))
			c.slots(size(3, 60), func(round int) {
				switch {
				case round%size(2, 5) != 0:
				case round%2 == 0:
					require.NoError(t, server.Stop(pgtest.Immediate))
					require.NoError(t, server.Restart())
				default:
					require.NoError(t, server.Kill())
					require.NoError(t, server.Restart())
				}
			})
		})
	}
}

// crew are worker processes that are killed and replaced. Half of them reach the server through a proxy.
type crew struct {
	e       *env
	exe     string // a binary whose clock can be off; "": this one
	proxied target
	proxy   *faults.Proxy
	all     []*process
	hired   int
}

func newCrew(e *env, exe string, n int) *crew {
	c := &crew{e: e, exe: exe}
	c.proxied, c.proxy = e.at.via(e.t)
	// Each tick, before it is committed.
	_, err := e.pool.Exec(context.Background(), fmt.Sprintf(`create table %[1]s.ticks (key text, slot timestamptz, next timestamptz);
		create function %[1]s.tick() returns trigger language plpgsql as $$
			begin
				insert into %[1]s.ticks values (old.key, old.next_at, new.next_at);
				perform pg_sleep(0.03); -- others come upon it
				return null;
			end $$;
		create trigger stint_test_tick after update on %[2]s.schedules for each row
			execute function %[1]s.tick()`, e.notes, e.schema))
	require.NoError(e.t, err)
	for range n {
		c.all = append(c.all, c.hire())
	}
	return c
}

func (c *crew) hire() *process {
	c.hired++
	w := c.e.worker(fmt.Sprintf("worker-%d", c.hired), func(w *child) {
		w.Work = 100 * time.Millisecond
		if c.hired%2 == 0 {
			w.At = c.proxied
		}
	})
	if c.exe == "" {
		return c.e.start(w)
	}
	return c.e.startAs(c.exe, w, skewEnv+"="+[]string{"ahead", "behind"}[c.hired/2%2])
}

// strike has a statement of the next tick fail that goes through the proxy.
func (c *crew) strike(round int) {
	c.proxy.Disarm()
	pattern := []string{".schedules set next_at", ".jobs (seq, enqueued_at", c.e.d.commit}[round%3]
	c.proxy.Arm(faults.Rule{Pattern: pattern, Moment: []faults.Moment{faults.Before, faults.After}[round/3%2]})
}

// slots lets n slots pass, each with a trouble of its own, and then counts.
func (c *crew) slots(n int, trouble func(round int)) {
	e, ctx := c.e, context.Background()
	s := e.open(e.at)
	due, err := s.DueSchedules(ctx, 0)
	require.NoError(e.t, err)
	first := due.Now.Truncate(time.Second).Add(time.Second)
	req, err := kind("q").Request(ctx, payload{})
	require.NoError(e.t, err)
	require.NoError(e.t, s.PutSchedule(ctx, core.ScheduleSpec{
		Key: slotsKey, Every: time.Second, Misfire: core.MisfireAll, CatchUp: core.MaxCatchUp, Request: req,
	}, first))
	rush, end := context.WithCancel(ctx)
	defer end()
	rushed := make(chan error, 2)
	for range cap(rushed) {
		other := e.open(e.at)
		go func() { rushed <- hasty(rush, other) }()
	}
	for round := range n {
		c.strike(round)
		e.soon("a slot passes", time.Minute, func() bool { return c.next().After(first.Add(time.Duration(round) * time.Second)) })
		if round%2 == 0 {
			i := rand.N(len(c.all))
			c.all[i].kill()
			c.all[i] = c.hire()
		}
		trouble(round)
		c.prune()
		c.late(s, first, round)
	}
	end()
	for range cap(rushed) {
		require.NoError(e.t, <-rushed)
	}
	c.proxy.Disarm()
	e.soon("the schedule is removed", 10*time.Second, func() bool {
		removed, err := s.RemoveSchedule(ctx, slotsKey)
		return err == nil && removed
	})
	e.soon("all jobs end", time.Minute, func() bool {
		return e.number(fmt.Sprintf("select (select count(*) from %[1]s.ready) + (select count(*) from %[1]s.delayed) + (select count(*) from %[1]s.leases)", e.schema)) == 0
	})
	for _, p := range c.all {
		p.stop()
	}
	e.sound()
	c.count(first)
}

// secondly is the tick of one slot.
func secondly(slot time.Time) core.Tick {
	return core.Tick{Key: slotsKey, Expect: slot, Slots: []time.Time{slot}, Passed: slot, Next: slot.Add(time.Second)}
}

// hasty is a sweep that ticks as soon as a slot is due, when others do.
func hasty(ctx context.Context, s *store) error {
	for ctx.Err() == nil {
		due, err := s.DueSchedules(ctx, 1)
		if err == nil && len(due.Due) > 0 {
			_, err = s.TickSchedule(ctx, secondly(due.Due[0].NextAt))
		}
		if err != nil && !errors.Is(err, core.ErrUnavailable) && !errors.Is(err, core.ErrUnknown) {
			return err
		}
		pause(min(max(due.NextIn, time.Millisecond), 50*time.Millisecond))
	}
	return nil
}

// late is a sweep that saw slots due and was held up until after their jobs were removed: nothing happens.
func (c *crew) late(s *store, first time.Time, round int) {
	for slot := max(0, round-3); slot <= round; slot++ {
		done, err := s.TickSchedule(context.Background(), secondly(first.Add(time.Duration(slot)*time.Second)))
		require.False(c.e.t, done, "a tick of slot %d after it had passed", slot)
		if err != nil && !errors.Is(err, core.ErrUnknown) { // the connection may be dead
			require.ErrorIs(c.e.t, err, core.ErrUnavailable)
		}
	}
}

// next is where the schedule stands; the zero time while the server can't say.
func (c *crew) next() (at time.Time) {
	_ = c.e.pool.QueryRow(context.Background(), "select next_at from "+c.e.schema+".schedules").Scan(&at) // again soon
	return at
}

// prune removes what has finished, as retention does sooner or later.
func (c *crew) prune() {
	_, _ = c.e.pool.Exec(context.Background(), fmt.Sprintf(`with f as (delete from %[1]s.finished returning seq, queue, name, state),
		k as (insert into %[1]s.tallies select queue, name, -(state = 5)::int, -(state = 6)::int, -(state = 7)::int from f),
		r as (delete from %[1]s.runs where seq in (select seq from f))
		delete from %[1]s.jobs where seq in (select seq from f)`, c.e.schema)) // by the next one, if not by this
}

// count holds what ran against what there is to a schedule with a slot every second.
func (c *crew) count(first time.Time) {
	e := c.e
	var last time.Time
	e.scan([]any{&last}, "select max(next) from "+e.notes+".ticks")
	var want []string
	for at := first; at.Before(last); at = at.Add(time.Second) {
		want = append(want, core.SlotID(slotsKey, at))
	}
	rows, err := e.pool.Query(context.Background(), "select job, count(distinct ref), bool_or(ended is not null) from "+e.runsTable()+" group by job order by job")
	require.NoError(e.t, err)
	var got []string
	for rows.Next() {
		var job string
		var jobs int
		var ended bool
		require.NoError(e.t, rows.Scan(&job, &jobs, &ended))
		require.Equal(e.t, 1, jobs, "jobs of %s", job)
		require.True(e.t, ended, job)
		got = append(got, job)
	}
	require.NoError(e.t, rows.Err())
	require.ElementsMatch(e.t, want, got)
	ticks := e.number("select count(*) from " + e.notes + ".ticks")
	require.Equal(e.t, ticks, e.number("select count(distinct slot) from "+e.notes+".ticks"), "a tick was done twice")
	require.Zero(e.t, e.number("select count(*) from "+e.notes+".ticks where next <= slot"), "a tick was done that moved nothing")
	require.Zero(e.t, e.number(`select count(*) from (select next, lead(slot) over (order by slot) as later from `+e.notes+`.ticks) t where later <> next`),
		"the schedule jumped")
	e.t.Logf("%d slots in %d ticks of %d processes", len(want), ticks, c.hired)
}
