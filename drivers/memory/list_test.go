package memstore_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
)

// pages reads a whole list, a page at a time; between is called after each page.
func pages(t *testing.T, s *memstore.Store, q core.Query, between func()) []string {
	t.Helper()
	var out []string
	for {
		p, err := s.List(t.Context(), q)
		require.NoError(t, err)
		out = append(out, ids(p.Jobs)...)
		if p.Cursor == "" {
			return out
		}
		require.Len(t, p.Jobs, q.PageSize())
		q.Cursor = p.Cursor
		between()
	}
}

// variety is a store with jobs in every state, some of them with equal times.
func variety(t *testing.T) *memstore.Store {
	s, c := newStore(t)
	for i := range 24 {
		r := request("work")
		r.ID = fmt.Sprintf("j%02d", i)
		r.Metadata = map[string]string{"third": fmt.Sprint(i % 3)}
		if i%6 == 1 {
			r.Delay = time.Duration(100-i) * time.Second
		}
		enqueue(t, s, r)
		if i%6 == 2 {
			claimOne(t, s, "work")
		}
		if i%6 > 2 {
			l := claimOne(t, s, "work")
			outcome := []core.Outcome{core.OutcomeComplete, core.OutcomeFail, core.OutcomeCancel}[i%6-3]
			_, err := s.Ack(t.Context(), []core.Ack{{Lease: l, Outcome: outcome}})
			require.NoError(t, err)
		}
		if i%2 == 1 {
			c.advance(time.Second)
		}
	}
	return s
}

// Every page of every order follows from the one before, in both directions, while other jobs come (Q27).
func TestListPages(t *testing.T) {
	for _, order := range []core.OrderBy{core.OrderEnqueued, core.OrderRun, core.OrderFinished} {
		for _, states := range [][]core.State{nil, {core.StateDelayed}, {core.StateWaiting, core.StateActive}, {core.StateFailed}} {
			t.Run(fmt.Sprint(order, states), func(t *testing.T) {
				s := variety(t)
				q := core.Query{OrderBy: order, States: states, Queue: "q", Name: "work"}
				nothing := func() {}
				whole := pages(t, s, q, nothing)
				q.Limit = 3
				q.Metadata = map[string]string{"third": "1"}
				for _, id := range pages(t, s, q, nothing) {
					require.Contains(t, whole, id)
				}
				q.Metadata = nil
				require.Equal(t, whole, pages(t, s, q, nothing))
				q.Ascending = true
				slices.Reverse(whole)
				require.Equal(t, whole, pages(t, s, q, nothing))

				q.Ascending = false
				slices.Reverse(whole)
				require.Equal(t, whole, pages(t, s, q, func() {
					r := request("work")
					r.Delay = time.Hour
					enqueue(t, s, r)
				}), "newer ones are on pages already read")
			})
		}
	}
}

// A cursor belongs to its query (Q27).
func TestListRefusesForeignCursors(t *testing.T) {
	s := variety(t)
	p, err := s.List(t.Context(), core.Query{Limit: 2})
	require.NoError(t, err)
	var invalid *core.InvalidError
	for _, q := range []core.Query{
		{Cursor: "x"}, {Cursor: "!"}, {Cursor: p.Cursor[1:]},
		{Cursor: p.Cursor, Ascending: true}, {Cursor: p.Cursor, OrderBy: core.OrderRun},
	} {
		_, err := s.List(t.Context(), q)
		require.ErrorAs(t, err, &invalid)
		require.Equal(t, "Cursor", invalid.Field)
	}
	none, err := s.List(t.Context(), core.Query{States: []core.State{}})
	require.NoError(t, err)
	require.Empty(t, none.Jobs)
}

// A page of large jobs ends early rather than copy all of them (Q27).
func TestListBoundsAPage(t *testing.T) {
	s := memstore.New(memstore.Options{Limits: core.Limits{Payload: 20 << 20}})
	var all []string
	for _, size := range []int{6, 6, 6, 20, 1, 1} {
		r := request("work")
		r.Payload = make([]byte, size<<20)
		all = append(all, enqueue(t, s, r))
	}
	var lists [][]string
	for q := (core.Query{Ascending: true, Limit: 5}); ; {
		p, err := s.List(t.Context(), q)
		require.NoError(t, err)
		lists = append(lists, ids(p.Jobs))
		if q.Cursor = p.Cursor; q.Cursor == "" {
			break
		}
	}
	require.Equal(t, [][]string{all[:2], all[2:3], all[3:4], all[4:]}, lists)
	require.NoError(t, s.Close())
}
