package robust_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// TestWorkersKilled: worker processes are killed at random, with kill -9, and others take their place.
func TestWorkersKilled(t *testing.T) {
	t.Parallel() // it waits for leases to run out
	eachDriver(t, func(t *testing.T, d driver) {
		e := sharedEnv(t, d)
		s := e.open(e.at)
		rounds, jobs := d.size(4, 2, 20), d.size(1500, 600, 20_000)
		next := 0
		another := func() *process {
			next++
			return e.start(e.worker(fmt.Sprintf("worker-%d", next), func(c *child) { c.Work = 50 * time.Millisecond }))
		}
		crew := []*process{another(), another(), another()}
		enqueue(t, s, requests(t, "q", 0, jobs)) // now, so that each has some
		for round := range rounds {
			// Somewhere on the way, never at the end; at once where work went on faster than processes start.
			part := jobs * 2 / 3 / rounds
			mark := 1 + round*part + rand.N(part)
			e.soon("work goes on", time.Minute, func() bool { return e.begun() >= mark })
			pause(rand.N(5 * time.Millisecond))
			i := rand.N(len(crew))
			crew[i].kill()
			crew[i] = another()
		}
		e.finish(jobs, time.Minute)
		for _, p := range crew {
			p.stop()
		}
		c := e.verify(s, jobs)
		t.Logf("%d kills: %+v", rounds, c)
		if c.Stalls == 0 {
			t.Error("no kill hit a run: the test proves nothing")
		}
	})
}
