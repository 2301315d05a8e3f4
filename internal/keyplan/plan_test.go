package keyplan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func on(key string, d time.Duration, replace bool) core.EnqueueRequest {
	return core.EnqueueRequest{Name: "job", Queue: "q", Delay: d, Dedupe: &core.Dedupe{Key: key, Replace: replace}}
}

// TestRepeats: what items of a call do to each other.
func TestRepeats(t *testing.T) {
	reqs := []core.EnqueueRequest{on("new", time.Hour, false), on("new", time.Minute, true), on("old", 0, true), on("old", 0, true), on("free", 0, false)}
	entries := map[Key]Entry{
		{"job", "old"}:  {KeyHolder: core.KeyHolder{State: core.StateDelayed}, ID: "#7", Seq: 7, Turn: 8},
		{"job", "free"}: {KeyHolder: core.KeyHolder{State: core.StateFailed}, ID: "#5", Seq: 5, Turn: 6},
	}
	p := Make(reqs, []int{0, 1, 2, 3, 4}, noon, entries, nil)
	require.Equal(t, 2, p.Planned, "what the third makes due comes behind the first")
	require.Equal(t, []Insert{{At: 0, Content: 1, Key: Key{"job", "new"}}}, p.Inserts)
	require.Empty(t, p.Touches)
	require.Equal(t, []Item{{Insert: 1}, {Result: core.EnqueueResult{Duplicate: true}, Insert: 1}, {}, {}, {}}, p.Items)
	require.Equal(t, time.Minute, p.Request(reqs, p.Inserts[0]).Delay)

	p = Make(reqs, []int{2, 3, 4}, noon, entries, nil)
	require.Equal(t, 3, p.Planned)
	require.Equal(t, []Insert{{At: 4, Content: 4, Key: Key{"job", "free"}, Was: 6}}, p.Inserts)
	require.Equal(t, []Touch{{Key: Key{"job", "old"}, Entry: entries[Key{"job", "old"}], Content: 2}}, p.Touches, "the second finds a job that waits")
	require.Equal(t, []Item{
		{}, {},
		{Result: core.EnqueueResult{ID: "#7", Duplicate: true}, Touch: 1}, {Result: core.EnqueueResult{ID: "#7", Duplicate: true}, Touch: 1},
		{Insert: 1},
	}, p.Items)
}
