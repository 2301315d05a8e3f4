package pgxstore

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/stintmq/stint/internal/pgsql"
	"github.com/stintmq/stint/internal/pgwake"
)

// listen starts to hear other processes, once.
func (s *Store) listen() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	if s.listening != nil {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.listening = cancel
	ear := pgwake.Ear{Hub: s.hub, Marks: &s.marks, Connect: s.connect, Logger: s.opts.Logger, Own: s.origin}
	s.ear.Go(func() { ear.Listen(ctx) })
	return nil
}

// connect makes a connection as the application's pool does, and listens.
func (s *Store) connect(ctx context.Context) (pgwake.Listener, error) {
	cfg := s.pool.Config()
	cc := cfg.ConnConfig
	if cfg.BeforeConnect != nil {
		cc = cc.Copy()
		if err := cfg.BeforeConnect(ctx, cc); err != nil {
			return nil, err
		}
	}
	conn, err := pgx.ConnectConfig(ctx, cc)
	if err != nil {
		return nil, err
	}
	if cfg.AfterConnect != nil {
		err = cfg.AfterConnect(ctx, conn)
	}
	if err == nil {
		_, err = conn.Exec(ctx, "listen "+pgx.Identifier{s.channel}.Sanitize())
	}
	if err != nil {
		_ = conn.Close(ctx) // the error says more
		return nil, err
	}
	return listener{conn}, nil
}

type listener struct{ conn *pgx.Conn }

func (l listener) Next(ctx context.Context) (string, error) {
	n, err := l.conn.WaitForNotification(ctx)
	if err != nil {
		return "", err
	}
	return n.Payload, nil
}

func (l listener) Ping(ctx context.Context) error { return l.conn.Ping(ctx) }

func (l listener) Close(ctx context.Context) { _ = l.conn.Close(ctx) }

// notify tells other processes of queues with news.
func (s *Store) notify(ctx context.Context, news []pgsql.News) error {
	payloads := make([]string, len(news))
	for i, n := range news {
		payloads[i] = pgwake.Payload(s.origin, n)
	}
	_, err := s.own.Exec(ctx, "select pg_notify($1::text, p) from unnest($2::text[]) p", s.channel, payloads)
	return err
}
