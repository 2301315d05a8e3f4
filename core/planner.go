package core

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// The planner's pace.
const (
	planSpread   = 100 * time.Millisecond // a fleet's workers come one after the other; the first mostly leaves nothing to do
	planBetween  = 250 * time.Millisecond // between passes that the wake channel asks for, at least
	planIdle     = 30 * time.Second       // between passes that nothing asks for, +-25 %
	planRetryMin = 100 * time.Millisecond
	planRetryMax = 5 * time.Second
	planBatch    = 100         // schedules per call
	planGiveUp   = 3           // ticks in a row that fail, and the store is taken to be away; or that others made
	planContest  = time.Second // between passes in which others made every tick, at most, +-25 %
)

// planner makes the jobs of schedules, of all that its store has (Q26). Every worker has one that runs. It sleeps until
// the next slot of any, or until the wake channel tells that schedules were changed. All it knows is what the store told
// it last, durations by the store's own clock included; that two of them plan the same slot harms nobody.
type planner struct {
	w     *Worker
	store Scheduler
	kick  chan struct{} // schedules may have changed
	size  batchLimit    // slots per tick
}

func newPlanner(w *Worker) *planner {
	return &planner{w: w, kick: make(chan struct{}, 1), size: newBatchLimit(planSlots)}
}

// now asks for a pass soon.
func (p *planner) now() {
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

func (p *planner) loop(ctx context.Context) {
	var ok bool
	if p.store, ok = As[Scheduler](p.w.store); !ok {
		return
	}
	sleep(ctx, rand.N(planSpread))
	outage, contest := newPause(planRetryMin, planRetryMax), newPause(planSpread/5, planContest)
	for failing := false; ctx.Err() == nil; {
		began := time.Now()
		done, err := p.pass(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, errors.ErrUnsupported):
			return // a store whose configuration has none
		case err != nil:
			if !failing {
				p.w.log.Warn("schedules were not planned, will be repeated", "error", err)
			}
			failing = true
			sleep(ctx, done.wait(outage.step()))
			continue
		}
		if failing {
			p.w.log.Info("schedules are planned again")
		}
		failing = false
		outage.reset()
		switch {
		case done.due == 0:
			contest.reset()
			p.rest(ctx, began, done.nextIn)
		case done.moved == 0:
			sleep(ctx, done.wait(contest.step())) // others are at it
		default:
			contest.reset() // and on at once: what moved may be due again, or more be left
		}
	}
}

// rest sleeps until a schedule is due, a little longer, or until something may have changed.
func (p *planner) rest(ctx context.Context, began time.Time, nextIn time.Duration) {
	d := jitter(planIdle)
	if nextIn > 0 && nextIn < d {
		d = nextIn + rand.N(planSpread)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-p.kick:
		sleep(ctx, max(time.Until(began.Add(planBetween)), rand.N(planSpread)))
	}
}

// planned is what a pass came to.
type planned struct {
	due, moved int
	nextIn     time.Duration // as the store said it
}

// wait is how long to wait after a pass that came to nothing: not over the slot of a schedule that was not in it.
func (d planned) wait(step time.Duration) time.Duration {
	if d.nextIn > 0 {
		step = min(step, max(d.nextIn, planRetryMin))
	}
	return step
}

// pass ticks what is due, up to planBatch schedules. The error is the store's, not that of a schedule.
func (p *planner) pass(ctx context.Context) (done planned, err error) {
	select {
	case <-p.kick: // this is what was asked for
	default:
	}
	due, err := p.ask(ctx)
	if err != nil {
		return planned{}, err
	}
	done = planned{due: len(due.Due), nextIn: due.NextIn}
	// Each worker in an order of its own: they meet less, and what fails every time stands before different others.
	rand.Shuffle(len(due.Due), func(i, j int) { due.Due[i], due.Due[j] = due.Due[j], due.Due[i] })
	failed, lost := 0, 0 // in a row
	for i := range due.Due {
		if ctx.Err() != nil || max(failed, lost) >= planGiveUp {
			break
		}
		moved, outage := p.advance(ctx, &due.Due[i], due.Now)
		switch {
		case outage != nil:
			failed, lost, err = failed+1, 0, outage
		case moved:
			failed, lost, done.moved = 0, 0, done.moved+1
		default:
			failed, lost = 0, lost+1
		}
	}
	return done, err
}

func (p *planner) ask(ctx context.Context) (DueSchedules, error) {
	call, cancel := p.w.storeCall(ctx)
	defer cancel()
	return p.store.DueSchedules(call, planBatch)
}

// advance makes the jobs of a due schedule, or stores why it can't. moved: it is not due as it was any more.
func (p *planner) advance(ctx context.Context, rec *ScheduleRecord, now time.Time) (moved bool, outage error) {
	t, fault := planTick(rec, now, p.size.now())
	if fault == nil {
		var slow bool
		moved, slow, fault = p.tick(ctx, t)
		p.size.note(slow, fault)
		if fault == nil {
			if moved {
				p.report(rec, t, now)
			}
			return moved, nil
		}
		if slow || isOutage(fault) {
			return false, fault
		}
	}
	// The schedule's own fault: it is put off, and whoever lists schedules sees why.
	off := Tick{Key: rec.Key, Expect: rec.NextAt, Err: sanitise(fault.Error()), RetryIn: DefaultBackoff().Delay(rec.Failures + 1)}
	moved, _, outage = p.tick(ctx, off)
	if moved {
		p.w.log.Error("schedule makes no jobs, will be tried again", "key", rec.Key, "retry_in", off.RetryIn, "error", brief(off.Err))
	}
	return moved, outage
}

func (p *planner) tick(ctx context.Context, t Tick) (moved, slow bool, err error) {
	call, cancel := p.w.storeCall(ctx)
	defer cancel()
	moved, err = p.store.TickSchedule(call, t)
	return moved, err != nil && ranOut(call), err
}

// report logs what an operator would want to know of a tick.
func (p *planner) report(rec *ScheduleRecord, t Tick, now time.Time) {
	if rec.Failures > 0 {
		p.w.log.Info("schedule makes jobs again", "key", rec.Key)
	}
	if late := now.Sub(rec.NextAt); late >= MisfireAfter && rec.Failures == 0 {
		p.w.log.Warn("schedule was late, no worker was there", "key", rec.Key, "by", late, "jobs", len(t.Slots))
	}
}

// isOutage reports whether an error says nothing of what was asked for, but of the store, or of the call.
func isOutage(err error) bool {
	return errors.Is(err, ErrUnavailable) || errors.Is(err, ErrUnknown) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded)
}
