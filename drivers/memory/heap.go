package memstore

// heap is a 4-ary min-heap ordered by (hi, lo). The keys live in the nodes, so that a comparison touches no item,
// and each node writes its position to *at, so that an item can leave from the middle.
//
// Four children per node halve the depth of a binary heap; two nodes share a cache line.
type heap[T any] struct{ nodes []node[T] }

type node[T any] struct {
	hi, lo int64
	at     *int
	item   T
}

func (n *node[T]) before(hi, lo int64) bool {
	return n.hi < hi || n.hi == hi && n.lo < lo
}

func (h *heap[T]) len() int { return len(h.nodes) }

// top is the first node. It panics on an empty heap.
func (h *heap[T]) top() *node[T] { return &h.nodes[0] }

func (h *heap[T]) push(hi, lo int64, at *int, item T) {
	h.nodes = append(h.nodes, node[T]{hi, lo, at, item})
	h.up(len(h.nodes) - 1)
}

// remove takes out the node at position i.
func (h *heap[T]) remove(i int) {
	last := len(h.nodes) - 1
	moved := h.nodes[last]
	h.nodes[last] = node[T]{} // the array must not keep the item alive
	h.nodes = h.nodes[:last]
	if i < last {
		h.nodes[i] = moved
		h.settle(i)
	}
	h.shrink()
}

// rekey gives the node at position i new keys.
func (h *heap[T]) rekey(i int, hi, lo int64) {
	h.nodes[i].hi, h.nodes[i].lo = hi, lo
	h.settle(i)
}

func (h *heap[T]) clear() {
	clear(h.nodes)
	h.nodes = h.nodes[:0]
}

// settle moves the node at position i to where its keys belong.
func (h *heap[T]) settle(i int) {
	if !h.up(i) {
		h.down(i)
	}
}

// up moves the node at position i towards the top and reports whether it moved.
func (h *heap[T]) up(i int) bool {
	start, n := i, h.nodes[i]
	for i > 0 {
		parent := (i - 1) / 4
		if !n.before(h.nodes[parent].hi, h.nodes[parent].lo) {
			break
		}
		h.set(i, h.nodes[parent])
		i = parent
	}
	h.set(i, n)
	return i != start
}

func (h *heap[T]) down(i int) {
	n := h.nodes[i]
	for {
		child := 4*i + 1
		if child >= len(h.nodes) {
			break
		}
		least := child
		for c := child + 1; c < min(child+4, len(h.nodes)); c++ {
			if h.nodes[c].before(h.nodes[least].hi, h.nodes[least].lo) {
				least = c
			}
		}
		if !h.nodes[least].before(n.hi, n.lo) {
			break
		}
		h.set(i, h.nodes[least])
		i = least
	}
	h.set(i, n)
}

func (h *heap[T]) set(i int, n node[T]) {
	h.nodes[i] = n
	*n.at = i
}

// shrink gives memory back after a burst; halving at a quarter keeps the cost per removal constant.
func (h *heap[T]) shrink() {
	const keep = 1024
	if c := cap(h.nodes); c > keep && len(h.nodes) < c/4 {
		h.nodes = append(make([]node[T], 0, c/2), h.nodes...)
	}
}

// each yields every item, in no order, and reports whether it reached the end.
func (h *heap[T]) each(yield func(T) bool) bool {
	for i := range h.nodes {
		if !yield(h.nodes[i].item) {
			return false
		}
	}
	return true
}
