package pgstore

import (
	"context"
	"sync"

	"github.com/stintmq/stint/internal/pgsql"
)

// ownTx is a transaction that the store itself commits, for the journal: what is enqueued in it is told of afterwards,
// as the queue's own calls do it, since a NOTIFY in it would have all such commits of the cluster one at a time (J12).
type ownTx struct {
	mu   sync.Mutex
	news map[string]pgsql.News
}

// ownKey is what finds it in a context, for one store.
type ownKey struct{ s *Store }

// own is the transaction that a call with ctx is part of; nil: one of the caller's.
func (s *Store) own(ctx context.Context) *ownTx {
	own, _ := ctx.Value(ownKey{s}).(*ownTx)
	return own
}

func (o *ownTx) add(news []pgsql.News) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.news == nil {
		o.news = make(map[string]pgsql.News)
	}
	pgsql.Merge(o.news, news...)
}

func (o *ownTx) take() []pgsql.News {
	o.mu.Lock()
	defer o.mu.Unlock()
	news := make([]pgsql.News, 0, len(o.news))
	for _, n := range o.news {
		news = append(news, n)
	}
	o.news = nil
	return news
}

// spread says which queues have news: here at once, elsewhere as soon as the gap between notifications allows.
func (s *Store) spread(news []pgsql.News) {
	s.marks.Lower(news...)
	s.hub.Ring(news...)
	s.teller.Tell(news...)
}
