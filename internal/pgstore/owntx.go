package pgstore

import (
	"context"
	"sync"

	"github.com/stintmq/stint/internal/pgsql"
)

// ownTx is a transaction that the store itself commits, for the journal: what is enqueued in it is told of afterwards,
// as the queue's own calls do it, since a NOTIFY in it would have all such commits of the cluster one at a time (J12).
type ownTx struct {
	id      any  // set before anybody has it
	bounded bool // whoever asked for it said until when

	mu   sync.Mutex
	over bool // whoever comes now is in another one
	told bool
	news map[string]pgsql.News
}

// ownKey is what finds it in a context, for one store.
type ownKey struct{ s *Store }

// own is the transaction of the store's that one with an id is; nil: it is the caller's. The context alone does not say
// so: whoever has it may begin transactions of his own with it, which commit when he likes and whatever becomes of the
// store's, or keep it for longer than that lasts, when others have its connection.
//
// A savepoint has the id of the transaction around it. Its news are told after the commit of that, also if it was rolled
// back: a wake too many is fine (Q15).
func (s *Store) own(ctx context.Context, id func() any) *ownTx {
	own, _ := ctx.Value(ownKey{s}).(*ownTx)
	if own == nil {
		return nil
	}
	own.mu.Lock()
	defer own.mu.Unlock()
	if own.over || own.id != id() {
		return nil
	}
	return own
}

// add reports false when the news were told already: whoever has more of them then tells them himself.
func (o *ownTx) add(news []pgsql.News) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.told {
		return false
	}
	if o.news == nil {
		o.news = make(map[string]pgsql.News)
	}
	pgsql.Merge(o.news, news...)
	return true
}

// end is to be called before others may have the connection.
func (o *ownTx) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
}

func (o *ownTx) take() []pgsql.News {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.told = true
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
