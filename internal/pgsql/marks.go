package pgsql

import (
	"hash/fnv"
	"slices"
	"sync"
	"time"
)

// Marks remember, per queue and set of names, up to which place a claim need not look: what is dead there stays in the
// index until a vacuum may remove it, and while some transaction stays open none may. Without marks each claim walks
// over all of it.
//
// A claim raises its marks to behind what it took, and where it found nothing, to the newest number drawn; but never
// beyond the horizon, behind which others may still commit (horizon.go). What comes back to an old place, or is
// committed after the horizon passed it, has to lower them: so whoever makes jobs waiting or delayed tells the
// smallest place and time of them, everywhere (News). News that come while a claim runs keep it from raising
// a mark beyond them. Only with a channel that works are there marks; and every few seconds one claim looks without (sqlSweep),
// for what nobody told of: jobs that a claim had locked and did not take.
//
// Marks are safe for concurrent use. A nil *Marks has none.
type Marks struct {
	mu      sync.Mutex
	on      bool
	sets    map[setKey]*markSet
	epoch   uint64
	horizon horizon
}

type setKey struct {
	queue string
	names int64
}

// markSet are the marks of one queue and set of names.
type markSet struct {
	lanes map[int16]int64
	due   time.Time // no delayed job of these names is due before
	news  []oldNews // the latest, for claims that were under way
	lost  uint64    // the epoch of the newest that was forgotten, or of the set's beginning
	swept time.Time
}

// oldNews are news and when they came.
type oldNews struct {
	News
	epoch uint64
}

// maxNews bounds what a set remembers of the latest news.
const maxNews = 256

// maxSets bounds the marks that are kept; beyond that they start again.
const maxSets = 10000

// sweepEvery is how often a claim looks without marks, over all processes.
const sweepEvery = 5 * time.Second

// News is what became waiting or delayed on a queue: no smaller place, and nothing due before.
type News struct {
	Queue string
	Place int64     // 0: nothing is waiting that was not
	Due   time.Time // zero: nothing is delayed that was not
}

// merge is the news of both.
func (n News) merge(o News) News {
	if o.Place != 0 && (n.Place == 0 || o.Place < n.Place) {
		n.Place = o.Place
	}
	if !o.Due.IsZero() && (n.Due.IsZero() || o.Due.Before(n.Due)) {
		n.Due = o.Due
	}
	return n
}

// Merge gathers news by queue.
func Merge(into map[string]News, news ...News) {
	for _, n := range news {
		old, ok := into[n.Queue]
		if !ok {
			old = n
		}
		into[n.Queue] = old.merge(n)
	}
}

// Start forgets all marks, and makes new ones from now on: every piece of news will be told to Lower.
func (m *Marks) Start() { m.reset(true) }

// Stop forgets all marks and makes none.
func (m *Marks) Stop() { m.reset(false) }

func (m *Marks) reset(on bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.on = on
	m.forget()
}

func (m *Marks) forget() {
	m.epoch++
	m.sets = make(map[setKey]*markSet)
	m.horizon = horizon{}
}

// Forget lets claims see everything once: something happened of which nobody knows what.
func (m *Marks) Forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget()
}

// Lower lets claims see what is new.
func (m *Marks) Lower(news ...News) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.epoch++
	for _, n := range news {
		for key, set := range m.sets {
			if key.queue != n.Queue {
				continue
			}
			if len(set.news) == maxNews {
				set.lost = set.news[maxNews/2].epoch
				set.news = append(set.news[:0], set.news[maxNews/2+1:]...)
			}
			set.news = append(set.news, oldNews{n, m.epoch})
			for lane, mark := range set.lanes {
				if n.Place != 0 && n.Place < mark {
					set.lanes[lane] = n.Place
				}
			}
			if !n.Due.IsZero() && n.Due.Before(set.due) {
				set.due = n.Due
			}
		}
	}
}

// view is what one claim may skip.
type view struct {
	key        setKey
	on         bool
	epoch      uint64
	priorities []int16
	places     []int64
	due        any // time or nil
	sweep      bool
	before     point // of what was seen when the claim was sent
	sent       time.Time
}

// look returns what a claim may skip now.
func (m *Marks) look(queue string, names []string) view {
	v := view{priorities: []int16{}, places: []int64{}}
	if m == nil {
		return v
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.on {
		return v
	}
	v.key, v.on, v.epoch = setKey{queue, hashOf(names)}, true, m.epoch
	v.before, v.sent = m.horizon.seen, time.Now()
	set := m.sets[v.key]
	if set == nil {
		if len(m.sets) >= maxSets {
			clear(m.sets)
		}
		m.sets[v.key] = &markSet{lanes: make(map[int16]int64), lost: m.epoch, swept: time.Now()}
		return v
	}
	for lane, place := range set.lanes {
		v.priorities, v.places = append(v.priorities, lane), append(v.places, place)
	}
	if !set.due.IsZero() {
		v.due = set.due
	}
	if time.Since(set.swept) > sweepEvery {
		v.sweep, set.swept = true, time.Now()
	}
	return v
}

// skips reports whether a claim with this view passes over something.
func (v view) skips() bool { return len(v.places) > 0 }

// strayed is the smallest place of what a claim found that one with this view would have passed over; 0: none.
func (v view) strayed(p *picked) int64 {
	var stray int64
	for i, place := range p.places {
		at := slices.Index(v.priorities, int16(p.jobs[i].Priority))
		if at >= 0 && place < v.places[at] && (stray == 0 || place < stray) {
			stray = place
		}
	}
	return stray
}

// bare is the view without marks.
func (v view) bare() view {
	v.priorities, v.places, v.due = []int16{}, []int64{}, nil
	return v
}

// note takes down what a claim with this view, in the transaction own, learned of the horizon.
func (m *Marks) note(v view, got point, own int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.sets[v.key] == nil: // all was forgotten since
	case got.number < v.before.number:
		m.forget() // a database from before: a backup, or a standby that lacked the last
	default:
		m.horizon.note(v.before, v.sent, got, own)
	}
}

// raise notes up to where a claim with this view has seen everything, but for what was news since. oldest is the
// oldest transaction whose end the claim did not see.
func (m *Marks) raise(v view, lanes map[int16]int64, due time.Time, oldest int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	set := m.sets[v.key]
	if set == nil || set.lost > v.epoch {
		return
	}
	sure := m.horizon.reached(oldest, v.sent)
	if sure.number == 0 {
		return
	}
	if due.After(sure.now) {
		due = sure.now // what is not committed yet is due later
	}
	since := News{Due: due}
	for i := len(set.news) - 1; i >= 0 && set.news[i].epoch > v.epoch; i-- {
		since = since.merge(set.news[i].News)
	}
	due = since.Due
	for lane, place := range lanes {
		place = min(place, sure.number+1)
		if since.Place != 0 {
			place = min(place, since.Place)
		}
		set.lanes[lane] = max(set.lanes[lane], place)
	}
	if due.After(set.due) {
		set.due = due
	}
}

// drop forgets the marks of a view: something is behind them that a claim must see.
func (m *Marks) drop(v view) {
	if m == nil || !v.on {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if set := m.sets[v.key]; set != nil {
		clear(set.lanes)
		set.due = time.Time{}
	}
}

// hashOf is a number for a set of names.
func hashOf(names []string) int64 {
	sorted := slices.Clone(names)
	slices.Sort(sorted)
	h := fnv.New64a()
	for _, name := range slices.Compact(sorted) {
		_, _ = h.Write(append([]byte(name), 0)) // never fails
	}
	return int64(h.Sum64())
}
