package pgsql

import (
	"testing"
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

func TestMarks(t *testing.T) {
	names := []string{"a", "b"}
	var m Marks
	v := m.look("q", names)
	m.raise(v, map[int16]int64{0: 10}, noon)
	require.False(t, m.look("q", names).skips(), "without a channel there are no marks")

	m.Start()
	m.raise(v, map[int16]int64{0: 10}, noon)
	require.False(t, m.look("q", names).skips(), "a claim from before")
	v = m.look("q", names)
	require.Nil(t, v.due)
	m.raise(v, map[int16]int64{0: 10, 5: 20}, noon)
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
	m.raise(v, map[int16]int64{0: 25, 5: 50}, noon.Add(time.Hour))
	v = m.look("q", names)
	require.Equal(t, map[int16]int64{0: 25, 5: 30}, places(v), "not beyond the news that came meanwhile")
	require.Equal(t, noon.Add(time.Minute), v.due)
	m.raise(v, map[int16]int64{0: 1}, noon)
	require.Equal(t, map[int16]int64{0: 25, 5: 30}, places(m.look("q", names)), "never down")

	v = m.look("q", names)
	for range 2 * maxNews {
		m.Lower(News{Queue: "q", Place: 1000})
	}
	m.raise(v, map[int16]int64{0: 500}, noon)
	require.Equal(t, map[int16]int64{0: 25, 5: 30}, places(m.look("q", names)), "more news than are remembered")

	m.drop(m.look("q", names))
	require.False(t, m.look("q", names).skips())
	m.raise(m.look("q", names), map[int16]int64{0: 40}, noon)
	v = m.look("q", names)
	require.True(t, v.skips())
	require.False(t, v.bare().skips())
	m.Forget()
	m.raise(v, map[int16]int64{0: 99}, noon)
	require.False(t, m.look("q", names).skips())
	m.Stop()
	m.raise(m.look("q", names), map[int16]int64{0: 99}, noon)
	require.False(t, m.look("q", names).skips())
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
	for _, bad := range []string{"", "a b c d", "exponential 1 2"} {
		_, err := parseBackoff(bad)
		require.Error(t, err)
	}
}
