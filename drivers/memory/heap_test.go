package memstore

import (
	"cmp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

type ball struct {
	hi, lo int64
	at     int
}

// TestHeap compares the heap with a plain list of what is in it, over random pushes, removals and new keys.
func TestHeap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h heap[*ball]
		var in []*ball
		var serial int64
		keys := rapid.Int64Range(-3, 3)
		pick := func(t *rapid.T) int {
			if len(in) == 0 {
				t.Skip("empty")
			}
			return rapid.IntRange(0, len(in)-1).Draw(t, "which")
		}
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				serial++
				b := &ball{hi: keys.Draw(t, "hi"), lo: serial}
				h.push(b.hi, b.lo, &b.at, b)
				in = append(in, b)
			},
			"remove": func(t *rapid.T) {
				i := pick(t)
				h.remove(in[i].at)
				in = slices.Delete(in, i, i+1)
			},
			"rekey": func(t *rapid.T) {
				b := in[pick(t)]
				b.hi = keys.Draw(t, "hi")
				h.rekey(b.at, b.hi, b.lo)
			},
			"": func(t *rapid.T) {
				require.NoError(t, h.check())
				require.Equal(t, len(in), h.len())
				if len(in) > 0 {
					require.Same(t, slices.MinFunc(in, byKeys), h.top().item)
				}
			},
		})
		slices.SortFunc(in, byKeys)
		for _, b := range in {
			require.Same(t, b, h.top().item)
			h.remove(0)
		}
		require.Zero(t, h.len())
	})
}

func byKeys(a, b *ball) int { return cmp.Or(cmp.Compare(a.hi, b.hi), cmp.Compare(a.lo, b.lo)) }

// TestHeapGivesMemoryBack: a burst of jobs must not cost its memory for ever.
func TestHeapGivesMemoryBack(t *testing.T) {
	const n = 100_000
	var h heap[*ball]
	for i := range int64(n) {
		b := &ball{lo: i}
		h.push(0, i, &b.at, b)
	}
	for i := range int64(n) {
		require.Equal(t, i, h.top().item.lo)
		h.remove(0)
	}
	require.Less(t, cap(h.nodes), n/10)
}
