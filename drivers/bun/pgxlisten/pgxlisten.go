// Package pgxlisten has stores of package bunstore hear of the work of other processes over pgx/stdlib:
//
//	store, err := bunstore.New(bundb, bunstore.Options{Listen: pgxlisten.On(bundb.DB)})
package pgxlisten

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	bunstore "github.com/stintmq/stint/drivers/bun"
	"github.com/stintmq/stint/internal/stdsql"
)

// On takes a connection of db, a *sql.DB of pgx/stdlib, for as long as a store listens. Its SetMaxOpenConns, if any,
// must be more than 6.
func On(db *sql.DB) func(ctx context.Context, channel string) (bunstore.Listener, error) {
	return func(ctx context.Context, channel string) (bunstore.Listener, error) {
		conn, err := stdsql.Working(ctx, db)
		if err != nil {
			return nil, err
		}
		l := &listener{conn: conn}
		err = conn.Raw(func(c any) error {
			under, ok := c.(*stdlib.Conn)
			if !ok {
				return fmt.Errorf("pgxlisten: %T is no connection of pgx/stdlib", c)
			}
			l.pgx = under.Conn()
			return nil
		})
		if err == nil {
			_, err = l.pgx.Exec(ctx, "listen "+pgx.Identifier{channel}.Sanitize())
		}
		if err != nil {
			l.Close(ctx)
			return nil, err
		}
		return l, nil
	}
}

// listener is a connection that nobody else uses.
type listener struct {
	conn *sql.Conn
	pgx  *pgx.Conn // the same, below
}

// Next implements bunstore.Listener.
func (l *listener) Next(ctx context.Context) (string, error) {
	n, err := l.pgx.WaitForNotification(ctx)
	if err != nil {
		return "", err
	}
	return n.Payload, nil
}

// Ping implements bunstore.Listener.
func (l *listener) Ping(ctx context.Context) error { return l.pgx.Ping(ctx) }

// Close implements bunstore.Listener.
func (l *listener) Close(context.Context) { stdsql.Discard(l.conn) }
