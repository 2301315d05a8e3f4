package pgwake

import (
	"context"
	"sync"
	"time"

	"github.com/stintmq/stint/internal/pgsql"
)

// Gap is the shortest time between two notifications of a queue by one process. NOTIFY takes a lock that is the whole
// cluster's, from before its commit to the end of it: with one in every insert 16 connections make a third of
// the inserts.
const Gap = 5 * time.Millisecond

// sendTimeout bounds one notification. What it does not reach in time is found by polling.
const sendTimeout = 5 * time.Second

// Teller tells other processes which queues have news: at once, and then again when the gap is over, for whatever
// happened meanwhile. Safe for concurrent use.
type Teller struct {
	send func(ctx context.Context, news []pgsql.News) error
	fail func(error)

	mu      sync.Mutex
	end     bool
	told    map[string]time.Time  // when a queue was told last
	pending map[string]pgsql.News // since then
	timer   *time.Timer
	sending sync.WaitGroup
}

// NewTeller returns a teller that sends with send; fail hears of errors.
func NewTeller(send func(ctx context.Context, news []pgsql.News) error, fail func(error)) *Teller {
	return &Teller{send: send, fail: fail, told: make(map[string]time.Time), pending: make(map[string]pgsql.News)}
}

// Due reports whether a queue may be told at once, and if so counts it as told: by the caller, who puts the
// notification into the statement that makes the news.
func (t *Teller) Due(queues ...string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	for _, q := range queues {
		if _, soon := t.pending[q]; soon || now.Sub(t.told[q]) < Gap {
			return false
		}
	}
	for _, q := range queues {
		t.told[q] = now
	}
	return true
}

// Tell tells of news as soon as the gap allows, without waiting for it.
func (t *Teller) Tell(news ...pgsql.News) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.end || len(news) == 0 {
		return
	}
	pgsql.Merge(t.pending, news...)
	first := time.Now().Add(Gap)
	for _, n := range news {
		if at := t.told[n.Queue].Add(Gap); at.Before(first) {
			first = at
		}
	}
	if t.timer == nil {
		t.sending.Add(1)
		t.timer = time.AfterFunc(time.Until(first), t.flush)
	}
}

// flush sends what is pending.
func (t *Teller) flush() {
	defer t.sending.Done()
	t.mu.Lock()
	t.timer = nil
	news := t.take()
	t.mu.Unlock()
	t.sendNow(news)
}

// take empties pending.
func (t *Teller) take() []pgsql.News {
	now := time.Now()
	news := make([]pgsql.News, 0, len(t.pending))
	for q, n := range t.pending {
		news = append(news, n)
		t.told[q] = now
	}
	clear(t.pending)
	for q, at := range t.told {
		if now.Sub(at) > time.Minute {
			delete(t.told, q)
		}
	}
	return news
}

func (t *Teller) sendNow(news []pgsql.News) {
	if len(news) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), sendTimeout)
	defer cancel()
	if err := t.send(ctx, news); err != nil {
		t.fail(err)
	}
}

// Close sends what is pending and waits for it. Tell does nothing afterwards.
func (t *Teller) Close() {
	t.mu.Lock()
	t.end = true
	var news []pgsql.News
	if t.timer != nil && t.timer.Stop() {
		t.timer = nil
		news = t.take()
		t.sending.Done()
	}
	t.mu.Unlock()
	t.sendNow(news)
	t.sending.Wait()
}
