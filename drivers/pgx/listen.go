package pgxstore

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stintmq/stint/internal/pgstore"
	"github.com/stintmq/stint/internal/pgwake"
)

// listen makes connections that listen: of their own, or as pool does.
func listen(pool *pgxpool.Pool, own *pgx.ConnConfig) pgstore.Listen {
	return func(ctx context.Context, channel string) (pgwake.Listener, error) {
		cfg := pool.Config()
		if own != nil {
			cfg = &pgxpool.Config{ConnConfig: own.Copy()}
		}
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
			_, err = conn.Exec(ctx, "listen "+pgx.Identifier{channel}.Sanitize())
		}
		if err != nil {
			_ = conn.Close(ctx) // the error says more
			return nil, err
		}
		return listener{conn}, nil
	}
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
