package bunstore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/pgstore"
	"github.com/stintmq/stint/internal/pgstore/pgstd"
	"github.com/stintmq/stint/internal/pgwake"
)

// postgres is the engine for Postgres.
type postgres struct{ *pgstd.Store }

func (p postgres) inTx(tx *sql.Tx) core.TxView { return pgstd.View(p.Store, tx) }

// newPostgres is New on Postgres.
func newPostgres(db *bun.DB, opts Options) (*Store, error) {
	b, err := pgstd.NewBackend(db.DB)
	if err != nil {
		return nil, err
	}
	return newOn(b, db, opts)
}

// newOn takes b over.
func newOn(b pgstore.Backend, db *bun.DB, opts Options) (_ *Store, err error) {
	listen, err := opts.listen(db.DB)
	if err != nil {
		_ = b.Close() // err says more
		return nil, err
	}
	s, err := pgstd.New(b, db.DB, pgstore.Options{
		Schema: opts.Schema, Clock: opts.Clock, Limits: opts.Limits, Logger: opts.Logger, Listen: listen,
		QuietTx: opts.QuietTx,
	})
	if err != nil {
		return nil, err
	}
	// Not as bun's identifier: that takes "." and "*" for more than parts of a name.
	schema := strings.ReplaceAll(pgstd.SchemaOf(s), `"`, `""`)
	return &Store{postgres{s}, db, bun.Safe(`"` + schema + `".job_status`)}, nil
}

const startTimeout = 30 * time.Second

// listen returns what opens connections that listen; nil: nothing can.
func (o Options) listen(db *sql.DB) (pgstore.Listen, error) {
	if o.Synchronous != "" {
		return nil, &core.InvalidError{Field: "Options.Synchronous", Reason: "is for SQLite"}
	}
	if o.Listen != nil {
		return func(ctx context.Context, channel string) (pgwake.Listener, error) { return o.Listen(ctx, channel) }, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	shows, err := showsNetwork(ctx, db)
	if err != nil {
		return nil, pgstd.Unconnected(err)
	}
	if !shows {
		return nil, nil
	}
	const keeps = 6
	if most := db.Stats().MaxOpenConnections; most > 0 && most <= keeps {
		return nil, &core.InvalidError{Field: "db", Reason: fmt.Sprintf("must allow more than %d connections (SetMaxOpenConns): "+
			"the store keeps that many for itself, one of them to listen", keeps)}
	}
	return listenOn(db), nil
}
