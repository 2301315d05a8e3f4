package pgstore

import (
	"context"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/pgsql"
	"github.com/stintmq/stint/internal/pgwake"
	"github.com/stintmq/stint/internal/sqlexec"
)

// listen starts to hear other processes, once.
func (s *Store) listen() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return core.ErrClosed
	}
	if s.listening != nil {
		return nil
	}
	if s.opts.Listen == nil {
		s.deaf.Do(func() { s.opts.Logger.Info("stint: nobody listens for the work of other processes, polling") })
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.listening = cancel
	connect := func(ctx context.Context) (pgwake.Listener, error) { return s.opts.Listen(ctx, s.channel) }
	tell := func(ctx context.Context, payload string) error { return s.say(ctx, []string{payload}) }
	ear := pgwake.Ear{Hub: s.hub, Marks: &s.marks, Connect: connect, Tell: tell, Logger: s.opts.Logger, Own: s.origin}
	s.ear.Go(func() { ear.Listen(ctx) })
	return nil
}

// tell says which queues have news: here at once, elsewhere as soon as the gap between notifications allows.
func (s *Store) tell(sn *session) {
	news := sn.Woken()
	s.marks.Lower(news...)
	s.hub.Ring(news...)
	if !sn.Told() {
		s.teller.Tell(news...)
	}
}

// notify tells other processes of queues with news.
func (s *Store) notify(ctx context.Context, news []pgsql.News) error {
	payloads := make([]string, len(news))
	for i, n := range news {
		payloads[i] = pgwake.Payload(s.origin, n)
	}
	return s.say(ctx, payloads)
}

func (s *Store) say(ctx context.Context, payloads []string) error {
	return s.backend.Do(ctx, Own, func(ctx context.Context, x sqlexec.Executor) error {
		_, err := x.Exec(ctx, "select pg_notify($1::text, p) from unnest($2::text[]) p", s.channel, payloads)
		return err
	})
}
