// Package keyplan works out what an Enqueue of many items does, once the ids and the dedupe keys that they name were
// looked up: what to insert, which jobs to give other content, which windows to move. Repeats inside the call behave
// like separate calls in their order (Q10 to Q12). It knows no database.
package keyplan

import (
	"time"

	"github.com/stintmq/stint/core"
)

// Key is a dedupe key of jobs of one name.
type Key struct{ Name, Key string }

// Entry is what a store knows of a key that was taken.
type Entry struct {
	core.KeyHolder
	ID   string // of the job
	Seq  int64  // its number
	Turn int64  // of this version of the entry, for stores that look and write in two steps
}

// Plan is what to do. Touches come first: an insert may take over what a touch changed.
type Plan struct {
	Touches []Touch
	Inserts []Insert
	Items   []Item // by position in the call; those that were not planned are zero
	// Planned is how many of the items the plan is for: the first ones. A job that is made due by a replace comes behind
	// what was inserted before it and ahead of what comes after it, so a plan has that as its first item alone.
	Planned int
}

// Window is how many of the items that are left are looked at for the next plan: all, until a plan is for a few of them.
type Window struct{ size int }

// Of returns the first of left.
func (w *Window) Of(left []int) []int {
	if w.size == 0 || w.size > len(left) {
		return left
	}
	return left[:w.size]
}

// Planned says how many of what Of returned a plan was for.
func (w *Window) Planned(n, of int) {
	if n < of {
		w.size = max(2*n, 16)
	} else {
		w.size = 2 * of
	}
}

// Insert is a job to insert.
type Insert struct {
	At      int // the item that it is of: its id, name, queue and key
	Content int // the item whose content it gets
	Key     Key // zero: none
	TTL     time.Duration
	Was     int64 // the turn of the entry that it takes over; 0: there is none
}

// Touch is an entry whose window moves or, with Content, whose job gets other content.
type Touch struct {
	Key     Key
	Entry   Entry
	Content int           // the item; -1: none
	TTL     time.Duration // 0: the window stays
}

// Item is what becomes of an item: its answer, and what that depends on.
type Item struct {
	Result core.EnqueueResult
	Insert int // 1 + the position of the insert whose job it is; the store knows its id when it has inserted it
	Touch  int // 1 + the position of the touch that it needs
}

// of is who has a key or an id by now.
type of struct {
	Entry
	insert, touch int // 1 + position, or 0
}

type planner struct {
	*Plan
	reqs []core.EnqueueRequest
	now  time.Time
	keys map[Key]*of
	ids  map[string]*of // of inserts
}

// Make plans the valid items at these positions. entries are the keys that are taken, holders the names of the jobs that
// have ids.
func Make(reqs []core.EnqueueRequest, at []int, now time.Time, entries map[Key]Entry, holders map[string]string) *Plan {
	p := planner{Plan: &Plan{Items: make([]Item, len(reqs))}, reqs: reqs, now: now, keys: make(map[Key]*of), ids: make(map[string]*of)}
	for k, e := range entries {
		p.keys[k] = &of{Entry: e}
	}
	for n, i := range at {
		if n > 0 && p.makesDue(i, holders) {
			break
		}
		p.Items[i] = p.item(i, holders)
		p.Planned++
	}
	return p.Plan
}

// makesDue reports whether an item has a delayed job wait, at a new place.
func (p *planner) makesDue(i int, holders map[string]string) bool {
	req := &p.reqs[i]
	if !MayMakeDue(req) || p.state(i) != core.StateWaiting {
		return false
	}
	id := req.ResolvedID()
	if _, held := holders[id]; held || p.ids[id] != nil {
		return false
	}
	met := p.keys[Key{req.Name, req.Dedupe.Key}]
	return met != nil && req.Dedupe.Decide(met.KeyHolder, p.now) == core.KeyReplace
}

// MayMakeDue reports whether a request may have a delayed job wait: a call with such an item has to look before it acts.
func MayMakeDue(req *core.EnqueueRequest) bool {
	return req.Dedupe != nil && req.Dedupe.Replace && req.Delay == 0
}

func (p *planner) item(i int, holders map[string]string) Item {
	req := &p.reqs[i]
	id := req.ResolvedID()
	if name, held := holders[id]; held {
		return Item{Result: taken(id, name, req.Name)}
	}
	if mine := p.ids[id]; mine != nil {
		return Item{Result: taken(id, p.reqs[p.Inserts[mine.insert-1].At].Name, req.Name), Insert: mine.insert}
	}
	if req.Dedupe != nil {
		if met := p.keys[Key{req.Name, req.Dedupe.Key}]; met != nil {
			if item, done := p.meet(i, met); done {
				return item
			}
		}
	}
	return p.insert(i, id)
}

// taken answers an item whose id is held by another job.
func taken(id, holder, name string) core.EnqueueResult {
	if holder != name {
		return core.EnqueueResult{Err: &core.ConflictError{Name: holder, ID: id}}
	}
	return core.EnqueueResult{ID: id, Duplicate: true}
}

// meet is an item whose key is taken; done is false where it is free.
func (p *planner) meet(i int, met *of) (item Item, done bool) {
	d := p.reqs[i].Dedupe
	item = Item{Result: core.EnqueueResult{ID: met.ID, Duplicate: true}, Insert: met.insert}
	switch d.Decide(met.KeyHolder, p.now) {
	case core.KeyFree:
		return Item{}, false
	case core.KeyExtend:
		p.change(met, Key{p.reqs[i].Name, d.Key}, -1, d.TTL)
	case core.KeyReplace:
		p.change(met, Key{p.reqs[i].Name, d.Key}, i, d.TTL)
		met.State = p.state(i)
	case core.KeyDuplicate:
	}
	item.Touch = met.touch
	return item, true
}

// change gives the job that has a key other content, or its window another end.
func (p *planner) change(met *of, k Key, content int, ttl time.Duration) {
	if ttl > 0 {
		met.End = core.Dedupe{TTL: ttl}.WindowEnd(p.now)
	}
	if met.insert > 0 {
		in := &p.Inserts[met.insert-1]
		if content >= 0 {
			in.Content = content
		}
		if ttl > 0 {
			in.TTL = ttl
		}
		return
	}
	if met.touch == 0 {
		p.Touches = append(p.Touches, Touch{Key: k, Entry: met.Entry, Content: -1})
		met.touch = len(p.Touches)
	}
	t := &p.Touches[met.touch-1]
	if content >= 0 {
		t.Content = content
	}
	if ttl > 0 {
		t.TTL = ttl
	}
}

func (p *planner) insert(i int, id string) Item {
	req := &p.reqs[i]
	in := Insert{At: i, Content: i}
	mine := &of{Entry: Entry{ID: id, KeyHolder: core.KeyHolder{State: p.state(i)}}, insert: len(p.Inserts) + 1}
	if d := req.Dedupe; d != nil {
		in.Key, in.TTL = Key{req.Name, d.Key}, d.TTL
		if met := p.keys[in.Key]; met != nil {
			in.Was = met.Turn
		}
		mine.End = d.WindowEnd(p.now)
		p.keys[in.Key] = mine
	}
	if id != "" {
		p.ids[id] = mine
	}
	p.Inserts = append(p.Inserts, in)
	return Item{Result: core.EnqueueResult{ID: id}, Insert: mine.insert}
}

// state is where a job with an item's delay is to stand.
func (p *planner) state(i int) core.State {
	if p.reqs[i].Delay > 0 || core.Micros(p.reqs[i].RunAt).After(p.now) {
		return core.StateDelayed
	}
	return core.StateWaiting
}

// Request is what to insert: what an item is, with another's content.
func (p *Plan) Request(reqs []core.EnqueueRequest, in Insert) core.EnqueueRequest {
	req := reqs[in.Content]
	at := &reqs[in.At]
	req.ID, req.Key, req.Name, req.Queue, req.Dedupe = at.ID, at.Key, at.Name, at.Queue, at.Dedupe
	return req
}
