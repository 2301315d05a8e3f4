package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// settler brings outcomes to the store (Q22). Takers put them into a bounded queue; one flush is under way per
// flusher, and whatever gathered meanwhile goes with the next: batches grow with load and idle acks wait for
// nothing.
type settler struct {
	w *Worker

	mu      sync.Mutex
	ready   sync.Cond // an entry came, or the settler closed
	room    sync.Cond // a flush took entries, or the settler was abandoned
	queue   []settling
	flying  int  // entries taken by a flusher and not yet settled
	idlers  int  // callers of idle
	endless bool // put waits for nothing: no more claims come
	closed  bool
	flusher sync.WaitGroup
}

// settling is one outcome on its way.
type settling struct {
	run      *run
	ack      Ack
	err      error     // what the handler returned, for hooks
	notUntil time.Time // its row was held elsewhere: ask again then
	tries    int       // times its row was held elsewhere
	replaced int       // times its own fault made us offer something plainer
	verify   bool      // its handler called Job.Complete: first ask whether that was committed
}

const (
	settleQueue = 1024    // outcomes that may wait; then takers do
	ackBatch    = 512     // acks per call
	ackBytes    = 8 << 20 // result bytes per call, one ack at least
	ackRetryMin = 20 * time.Millisecond
	ackRetryMax = time.Second
)

func newSettler(w *Worker) *settler {
	s := &settler{w: w}
	s.ready.L, s.room.L = &s.mu, &s.mu
	return s
}

// start runs n flushers until close, or until ctx ends.
func (s *settler) start(ctx context.Context, n int) {
	context.AfterFunc(ctx, s.nudge)
	for range n {
		s.flusher.Go(func() { s.flush(ctx) })
	}
}

// put takes an outcome; it waits while the queue is full.
func (s *settler) put(e settling) {
	e.run.acking.Store(true)
	s.mu.Lock()
	for len(s.queue) >= settleQueue && !s.endless {
		s.room.Wait()
	}
	s.queue = append(s.queue, e)
	s.mu.Unlock()
	s.ready.Broadcast()
}

// nudge wakes the flushers. Under the lock, so that it cannot fall between their look and their wait.
func (s *settler) nudge() {
	s.mu.Lock()
	s.ready.Broadcast()
	s.mu.Unlock()
}

// unbound lets the queue grow past its bound: once nothing more is claimed, what is in flight bounds it.
func (s *settler) unbound() {
	s.mu.Lock()
	s.endless = true
	s.room.Broadcast()
	s.mu.Unlock()
}

// close lets the flushers end once everything is settled.
func (s *settler) close() {
	s.unbound()
	s.mu.Lock()
	s.closed = true
	s.ready.Broadcast()
	s.mu.Unlock()
}

// idle waits until everything put so far is settled, or until close.
func (s *settler) idle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idlers++
	for (len(s.queue) > 0 || s.flying > 0) && !s.closed {
		s.ready.Wait()
	}
	s.idlers--
}

func (s *settler) flush(ctx context.Context) {
	use := scratch{size: newBatchLimit(ackBatch)}
	for {
		batch, ok := s.take(ctx, &use)
		if !ok {
			return
		}
		s.send(ctx, batch, &use)
		clear(batch)
		s.mu.Lock()
		s.flying -= len(batch)
		if s.closed || s.idlers > 0 {
			s.ready.Broadcast() // somebody waits for the last entry to land
		}
		s.mu.Unlock()
	}
}

// scratch is what a flusher uses anew for each batch.
type scratch struct {
	batch []settling
	acks  []Ack
	seen  map[string]struct{}
	size  batchLimit
}

// take waits for entries and returns the next batch: each job at most once, later ones stay for the next.
func (s *settler) take(ctx context.Context, use *scratch) ([]settling, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if ctx.Err() != nil {
			return nil, false
		}
		batch, wait := s.pick(time.Now(), use)
		if len(batch) > 0 {
			s.flying += len(batch)
			s.room.Broadcast()
			return batch, true
		}
		if s.closed && len(s.queue) == 0 && s.flying == 0 {
			s.ready.Broadcast()
			return nil, false
		}
		var timer *time.Timer
		if wait > 0 {
			timer = time.AfterFunc(wait, s.nudge)
		}
		s.ready.Wait()
		if timer != nil {
			timer.Stop()
		}
	}
}

// pick removes a batch from the queue. wait: when the earliest entry that has to wait is due; 0: there is none.
func (s *settler) pick(now time.Time, use *scratch) (batch []settling, wait time.Duration) {
	if len(s.queue) == 0 {
		return nil, 0
	}
	if use.seen == nil {
		use.seen = make(map[string]struct{}, ackBatch)
	}
	clear(use.seen)
	batch = use.batch[:0]
	size := 0
	rest := s.queue[:0]
	for i, e := range s.queue {
		if len(batch) == use.size.now() {
			rest = append(rest, s.queue[i:]...)
			break
		}
		_, twice := use.seen[e.ack.Lease.ID]
		full := len(batch) > 0 && size+len(e.ack.Result) > ackBytes
		if d := e.notUntil.Sub(now); d > 0 {
			if wait == 0 || d < wait {
				wait = d
			}
		} else if !twice && !full {
			use.seen[e.ack.Lease.ID] = struct{}{}
			size += len(e.ack.Result)
			batch = append(batch, e)
			continue
		}
		rest = append(rest, e)
	}
	clear(s.queue[len(rest):])
	s.queue, use.batch = rest, batch
	return batch, wait
}

// send offers a batch until the store answers.
func (s *settler) send(ctx context.Context, batch []settling, use *scratch) {
	if batch = s.verify(ctx, batch); len(batch) == 0 {
		return
	}
	acks := use.acks[:0]
	for i := range batch {
		acks = append(acks, batch[i].ack)
	}
	use.acks = acks
	defer clear(acks)
	for pause := newPause(ackRetryMin, ackRetryMax); ; {
		results, slow, err := s.ack(ctx, acks)
		use.size.note(slow, err)
		if err == nil {
			for i, res := range results {
				s.settled(batch[i], res)
			}
			return
		}
		if isInvalid(err) && len(batch) == 1 {
			s.settled(batch[0], AckResult{Err: err})
			return
		}
		if len(batch) > 1 && (isInvalid(err) || slow && ctx.Err() == nil) {
			// A data fault that the store could not pin on a row: halve the batch until it is alone (Q22). Or too
			// much for one call.
			s.send(ctx, batch[:len(batch)/2], use)
			s.send(ctx, batch[len(batch)/2:], use)
			return
		}
		if ctx.Err() != nil || errors.Is(err, ErrClosed) {
			return // abandoned; the leases stay in flight and are named by ShutdownError
		}
		s.w.log.Warn("ack failed, will be repeated", "acks", len(acks), "error", err)
		pause.wait(ctx)
	}
}

// verify asks about runs that called Job.Complete, and returns what is to be acked: those whose lease still
// holds were not committed (Q14).
func (s *settler) verify(ctx context.Context, batch []settling) []settling {
	if !slices.ContainsFunc(batch, func(e settling) bool { return e.verify }) {
		return batch
	}
	var asked []settling
	acked := make([]settling, 0, len(batch))
	for _, e := range batch {
		if e.verify {
			asked = append(asked, e)
		} else {
			acked = append(acked, e)
		}
	}
	leases := make([]Lease, len(asked))
	for i, e := range asked {
		leases[i] = e.ack.Lease
	}
	ext, _, err := s.w.extend(ctx, leases)
	lost, busy := keySet(ext.Lost), keySet(ext.Busy)
	for _, e := range asked {
		switch key := e.ack.Lease.key(); {
		case errors.Is(err, ErrClosed): // stays in flight, as in send
		case err != nil || busy[key]:
			s.later(e) // its transaction may still be open
		case lost[key]:
			s.w.flights.remove(e.run) // the commit ended it
			if e.run.completed.Load() {
				e.ack.Outcome, e.ack.Failure = OutcomeComplete, nil
				s.w.tellFinish(e, StateCompleted, true)
			} else {
				s.w.tellLost(e.run, e.ack.Outcome, ErrLeaseLost)
			}
		default:
			e.verify = false
			if e.ack.Outcome == OutcomeComplete {
				e.err = ErrTxNotCommitted
				e.ack = e.run.failed(Ack{Lease: e.ack.Lease}, newFailure(e.err), true)
			}
			acked = append(acked, e)
		}
	}
	return acked
}

func keySet(ls []Lease) map[claimKey]bool {
	set := make(map[claimKey]bool, len(ls))
	for _, l := range ls {
		set[l.key()] = true
	}
	return set
}

func (s *settler) ack(ctx context.Context, acks []Ack) (results []AckResult, slow bool, err error) {
	ctx, cancel := s.w.storeCall(ctx)
	defer cancel()
	results, err = s.w.store.Ack(ctx, acks)
	if err == nil && len(results) != len(acks) {
		err = fmt.Errorf("%w: store answered %d results for %d acks", ErrUnknown, len(results), len(acks))
	}
	return results, err != nil && ranOut(ctx), err
}

// settled deals with the store's answer to one ack.
func (s *settler) settled(e settling, res AckResult) {
	switch {
	case res.Err == nil:
		s.w.flights.remove(e.run)
		s.w.tellFinish(e, res.State, false)
		s.w.reportFailure(e, res.State)
	case errors.Is(res.Err, ErrLeaseLost), errors.Is(res.Err, ErrNotFound):
		s.w.flights.remove(e.run)
		s.w.log.Warn("outcome dropped: lease lost", jobAttr(e.run), "outcome", string(e.ack.Outcome))
		s.w.tellLost(e.run, e.ack.Outcome, res.Err)
	case errors.Is(res.Err, ErrUnavailable), errors.Is(res.Err, ErrUnknown):
		s.later(e)
	default:
		s.plainer(e, res.Err)
	}
}

// plainer replaces an ack that the store refuses by one that it can take: the job fails with the reason, and if
// even that is refused, with a constant one. Then the lease is left to the sweep.
func (s *settler) plainer(e settling, why error) {
	s.w.log.Error("store refused an outcome", jobAttr(e.run), "outcome", string(e.ack.Outcome), "error", why)
	e.replaced++
	failure := &Failure{Type: "refused", Message: "the store refused the outcome of this run"}
	switch e.replaced {
	case 1:
		failure.Message = sanitise("the store refused the outcome of this run: " + why.Error())
	case 2:
	default:
		s.w.flights.remove(e.run)
		s.w.tellLost(e.run, e.ack.Outcome, why)
		return
	}
	e.ack = Ack{Lease: e.ack.Lease, Outcome: OutcomeFail, Failure: failure}
	e.err = why
	s.again(e)
}

// later queues an entry whose row is held elsewhere.
func (s *settler) later(e settling) {
	e.notUntil = time.Now().Add(jitter(min(ackRetryMin<<min(e.tries, 6), ackRetryMax)))
	e.tries++
	s.again(e)
}

// again queues an entry that is already counted; it does not wait for room, since it made some.
func (s *settler) again(e settling) {
	s.mu.Lock()
	s.queue = append(s.queue, e)
	s.mu.Unlock()
	s.ready.Broadcast()
}
