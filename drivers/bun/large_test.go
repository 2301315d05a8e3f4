package bunstore_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	bunstore "github.com/stintmq/stint/drivers/bun"
)

// handClock is moved by hand.
type handClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *handClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *handClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// TestClaimCutShortWakes: jobs that came due and did not fit into the claim are news to others (Q3, Q4).
func TestClaimCutShortWakes(t *testing.T) {
	clock := &handClock{now: time.Now()}
	s := open(t, bunstore.Options{Clock: clock, Limits: core.Limits{Payload: core.MaxClaimBytes}})
	r := request("job")
	r.Payload = make([]byte, core.MaxClaimBytes*2/3)
	r.Delay = time.Second
	enqueue(t, s, r, r)
	clock.advance(time.Minute)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	before, err := s.AwaitWake(ctx, nil, "")
	require.NoError(t, err)
	got := claim(t, s, 2, "job")
	require.Equal(t, 1, len(got.Jobs))
	require.EqualValues(t, 1, got.NextIn)
	_, err = s.AwaitWake(ctx, []string{"q"}, before.Token)
	require.NoError(t, err, "the queue was not woken")
}

// TestListOfLargeJobs: a page ends early rather than fill the memory (Q27).
func TestListOfLargeJobs(t *testing.T) {
	s := open(t, bunstore.Options{Limits: core.Limits{Payload: 20 << 20}})
	var ids []string
	for _, size := range []int{6, 6, 6, 20, 1, 1} {
		r := request("job")
		r.Payload = make([]byte, size<<20)
		ids = append(ids, enqueue(t, s, r)[0].ID)
	}
	var pages [][]string
	q := core.Query{Ascending: true, Limit: 5}
	for {
		page, err := s.List(context.Background(), q)
		require.NoError(t, err)
		var some []string
		for _, j := range page.Jobs {
			some = append(some, j.ID)
		}
		pages = append(pages, some)
		if q.Cursor = page.Cursor; q.Cursor == "" {
			break
		}
	}
	require.Equal(t, [][]string{ids[:2], ids[2:3], ids[3:4], ids[4:]}, pages)
}

// TestListCountsResults: a page is bounded by what jobs returned, too.
func TestListCountsResults(t *testing.T) {
	s := open(t, bunstore.Options{Limits: core.Limits{Payload: 10 << 20}})
	enqueue(t, s, request("job"), request("job"))
	for _, l := range takeAll(t, s, 2) {
		res, err := s.Ack(context.Background(), []core.Ack{{Lease: l, Outcome: core.OutcomeComplete, Result: make([]byte, 10<<20)}})
		require.NoError(t, err)
		require.NoError(t, res[0].Err)
	}
	page, err := s.List(context.Background(), core.Query{OrderBy: core.OrderFinished, States: []core.State{core.StateCompleted}})
	require.NoError(t, err)
	require.Equal(t, 1, len(page.Jobs))
	require.NotEmpty(t, page.Cursor)
}
