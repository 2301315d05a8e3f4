package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	bunstore "github.com/stintmq/stint/drivers/bun"
	"github.com/stintmq/stint/drivers/bun/pgxlisten"
)

// database is a store, and what has to be closed after it.
type database struct {
	*bunstore.Store
	below *bun.DB
}

func (d *database) Close() error {
	err := d.Store.Close()
	if d.below != nil {
		err = errors.Join(err, d.below.Close())
	}
	return err
}

// open opens the store that -store names, with the bank's own tables in it. SQLite and Postgres differ here, and nowhere
// else. It also says where that is.
func open(ctx context.Context, store string) (db *database, where string, err error) {
	kind, path, _ := strings.Cut(store, ":")
	switch {
	case kind == "sqlite" && path != "":
		s, err := bunstore.OpenSQLite(path)
		if err != nil {
			return nil, "", err
		}
		db, where = &database{Store: s}, path
	case (kind == "postgres" || kind == "postgresql") && path != "":
		if strings.HasPrefix(path, "//") {
			path = store // a URL
		}
		if db, where, err = openPostgres(ctx, path); err != nil {
			return nil, "", err
		}
	default: // not what it is instead: there may be a password in it
		return nil, "", usageError{errors.New("unknown -store: use sqlite:PATH or postgres:DSN")}
	}
	for _, model := range []any{(*balance)(nil), (*received)(nil)} {
		create := db.DB().NewCreateTable().Model(model).IfNotExists()
		if _, err = create.Exec(ctx); err != nil {
			_, err = create.Exec(ctx) // of two that start at once Postgres may fail one, and has the table then
		}
		if err != nil {
			return nil, "", errors.Join(err, db.Close())
		}
	}
	return db, where, nil
}

// connections are enough for the store, the worker and the shop: whoever finds none waits for a moment.
const connections = 16

func openPostgres(ctx context.Context, dsn string) (*database, string, error) {
	at, err := pgx.ParseConfig(dsn)
	if err != nil { // unsaid: it quotes the string
		return nil, "", usageError{errors.New("-store postgres: what follows is not a connection string of Postgres")}
	}
	schema := cmp.Or(at.RuntimeParams["search_path"], "ledger")
	at.RuntimeParams["search_path"] = schema // for the bank's tables; the store names its own in full
	below := bun.NewDB(stdlib.OpenDB(*at), pgdialect.New())
	below.SetMaxOpenConns(connections)
	below.SetMaxIdleConns(connections) // database/sql's default keeps two, and opens the others again and again
	opts := bunstore.Options{Schema: schema, Listen: pgxlisten.On(below.DB)}
	var s *bunstore.Store
	if err = bunstore.Migrate(ctx, below, opts); err == nil {
		s, err = bunstore.New(below, opts)
	}
	if err != nil {
		return nil, "", errors.Join(err, below.Close())
	}
	where := fmt.Sprintf("the schema %q of the database %q on %s:%d", schema, at.Database, at.Host, at.Port)
	return &database{s, below}, where, nil
}
