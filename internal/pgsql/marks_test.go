package pgsql

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

var noon = time.Date(2026, time.May, 1, 12, 0, 0, 0, time.UTC)

// places are a view's marks by lane.
func places(v view) map[int16]int64 {
	m := make(map[int16]int64)
	for i, lane := range v.priorities {
		m[lane] = v.places[i]
	}
	return m
}

// claimed is what a claim does with the marks: it learns of the horizon and raises what it saw the end of.
func claimed(m *Marks, v view, lanes map[int16]int64, due time.Time) {
	m.note(v, point{1000, noon.Add(24 * time.Hour)}, 7)
	m.raise(v, lanes, due, 8)
}

func TestMarks(t *testing.T) {
	names := []string{"a", "b"}
	var m Marks
	require.False(t, m.look("q", names).on, "without a channel there are no marks")

	m.Start()
	claimed(&m, m.look("q", names), map[int16]int64{0: 5}, noon)
	v := m.look("q", names)
	require.False(t, v.skips(), "the first claim knows no horizon")
	require.Nil(t, v.due)
	claimed(&m, v, map[int16]int64{0: 10, 5: 20}, noon)
	v = m.look("q", []string{"b", "a"})
	require.Equal(t, map[int16]int64{0: 10, 5: 20}, places(v))
	require.Equal(t, noon, v.due)
	require.False(t, m.look("q", names[:1]).skips(), "another set of names")
	require.False(t, m.look("r", names).skips(), "another queue")

	m.Lower(News{Queue: "q", Place: 15, Due: noon.Add(-time.Hour)})
	require.Equal(t, map[int16]int64{0: 10, 5: 15}, places(m.look("q", names)))
	require.Equal(t, noon.Add(-time.Hour), m.look("q", names).due)
	m.Lower(News{Queue: "r", Place: 1})
	require.Equal(t, map[int16]int64{0: 10, 5: 15}, places(m.look("q", names)))

	v = m.look("q", names)
	m.Lower(News{Queue: "q", Place: 30, Due: noon.Add(time.Minute)})
	claimed(&m, v, map[int16]int64{0: 25, 5: 50}, noon.Add(time.Hour))
	v = m.look("q", names)
	require.Equal(t, map[int16]int64{0: 25, 5: 30}, places(v), "not beyond the news that came meanwhile")
	require.Equal(t, noon.Add(time.Minute), v.due)
	claimed(&m, v, map[int16]int64{0: 1}, noon)
	require.Equal(t, map[int16]int64{0: 25, 5: 30}, places(m.look("q", names)), "never down")

	v = m.look("q", names)
	for range 2 * maxNews {
		m.Lower(News{Queue: "q", Place: 1000})
	}
	claimed(&m, v, map[int16]int64{0: 500}, noon)
	require.Equal(t, map[int16]int64{0: 25, 5: 30}, places(m.look("q", names)), "more news than are remembered")

	m.drop(m.look("q", names))
	require.False(t, m.look("q", names).skips())
	claimed(&m, m.look("q", names), map[int16]int64{0: 40}, noon)
	v = m.look("q", names)
	require.True(t, v.skips())
	require.False(t, v.bare().skips())
	m.Forget()
	claimed(&m, v, map[int16]int64{0: 99}, noon)
	claimed(&m, m.look("q", names), map[int16]int64{0: 99}, noon)
	require.False(t, m.look("q", names).skips(), "a claim from before, and one that knows no horizon")
	m.Stop()
	require.False(t, m.look("q", names).on)
}

// TestHorizon: a claim raises marks no further than what was drawn before an earlier claim all of whose elders it saw
// the end of.
func TestHorizon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := func(n int64) point { return point{n, noon.Add(time.Duration(n) * time.Second)} }
		var h horizon
		h.note(h.seen, time.Now(), at(10), 100)
		require.Zero(t, h.reached(200, time.Now()), "nothing was known when the first claim was sent")
		h.note(at(10), time.Now(), at(20), 110)
		require.Zero(t, h.reached(110, time.Now()), "a transaction from before is open")
		require.Equal(t, at(10), h.reached(111, time.Now()))
		h.note(at(20), time.Now(), at(30), 120)
		require.Equal(t, at(10), h.reached(120, time.Now()))
		require.Equal(t, at(20), h.reached(121, time.Now()))
		require.Zero(t, h.reached(120, time.Now()), "an answer that comes late")
		h.note(at(15), time.Now(), at(25), 115)
		require.Equal(t, at(30), h.seen, "and one that comes late to be noted")
		require.Equal(t, at(20), h.reached(121, time.Now()))

		h.note(at(30), time.Now(), at(30), 0)
		require.Equal(t, at(20), h.reached(500, time.Now()), "a claim that took nothing is no elder of anybody")
		h.note(at(30), time.Now(), at(30), 130)
		require.Equal(t, at(30), h.reached(131, time.Now()), "of two with the same number, the one that took something counts")

		h.note(at(35), time.Now(), at(40), 0)
		require.Equal(t, at(30), h.reached(131, time.Now()))
		time.Sleep(settleAfter)
		require.Equal(t, at(35), h.reached(1, time.Now()), "a transaction that writes for long stops nobody")
		for n := range int64(2 * maxFences) {
			h.note(at(40+n), time.Now(), at(50+n), 200+n)
		}
		require.LessOrEqual(t, len(h.fences), maxFences)
	})
}

func TestMergeNews(t *testing.T) {
	all := map[string]News{}
	Merge(all, News{Queue: "q"}, News{Queue: "q", Place: 5}, News{Queue: "q", Place: 3, Due: noon},
		News{Queue: "q", Place: 9, Due: noon.Add(-1)}, News{Queue: "r", Due: noon})
	require.Equal(t, map[string]News{"q": {Queue: "q", Place: 3, Due: noon.Add(-1)}, "r": {Queue: "r", Due: noon}}, all)
}

func TestBackoffText(t *testing.T) {
	got, err := parseBackoff("exponential 1000000000 300000000000 2.5 exact")
	require.NoError(t, err)
	require.Equal(t, "exponential 1000000000 300000000000 2.5 exact", backoffText(got))
	for _, bad := range []string{"", "a b c d", "exponential 1 2", "exponential 1 2 x", "fibonacci 1 2 3"} {
		_, err := parseBackoff(bad)
		require.Error(t, err)
	}
}
