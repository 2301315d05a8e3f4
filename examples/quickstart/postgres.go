package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stintmq/stint/core"
	pgxstore "github.com/stintmq/stint/drivers/pgx"
)

// postgresServer keeps jobs and results in one schema of a database.
type postgresServer struct {
	*pgxstore.Store
	pool   *pgxpool.Pool
	inUse  *pgx.Conn // holds the schema against -fresh
	schema string
}

func openPostgres(ctx context.Context, dsn string, fresh bool, out *screen) (_ *postgresServer, err error) {
	cfg, schema, err := readDSN(dsn)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	s := &postgresServer{pool: pool, schema: schema}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if fresh {
		emptied, err := dropSchema(ctx, pool, schema)
		if err != nil {
			return nil, fmt.Errorf("-fresh leaves the schema %q as it is: %w", schema, err)
		}
		if emptied {
			out.printf("starting over: emptied the schema %q", schema)
		}
	}
	if s.inUse, err = pgx.ConnectConfig(ctx, cfg.ConnConfig); err != nil {
		return nil, err
	}
	if _, err := s.inUse.Exec(ctx, "select pg_advisory_lock_shared("+lockOfSchema+")", schema); err != nil {
		return nil, err
	}
	if err := pgxstore.Migrate(ctx, pool, schema); err != nil {
		return nil, err
	}
	// No file can have two rows: the second insert fails, and its transaction with it.
	_, err = pool.Exec(ctx, `create table if not exists `+s.results()+` (
		file text primary key, size bigint not null, lines bigint not null, words bigint not null, sha256 text not null)`)
	if err != nil {
		return nil, err
	}
	s.Store, err = pgxstore.New(pool, pgxstore.Options{Schema: schema})
	return s, err
}

// readDSN reads a URL or key=value words. A search_path in it names the schema. What is wrong with it stays unsaid:
// such errors quote it, and it may hold a password.
func readDSN(dsn string) (cfg *pgxpool.Config, schema string, err error) {
	cfg, err = pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, "", usageError{errors.New("-store postgres: what follows is not a connection string of Postgres")}
	}
	schema = cmp.Or(cfg.ConnConfig.RuntimeParams["search_path"], "quickstart")
	if strings.ContainsAny(schema, `,"$ `) {
		return nil, "", usageError{errors.New("-store postgres: search_path must be the name of one schema")}
	}
	return cfg, schema, nil
}

// results is the table beside the jobs, quoted.
func (s *postgresServer) results() string { return resultsIn(s.schema) }

func resultsIn(schema string) string { return pgx.Identifier{schema, resultsTable}.Sanitize() }

func (s *postgresServer) Save(ctx context.Context, file string, st Stats, complete func(core.TxView) error) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "insert into "+s.results()+" (file, size, lines, words, sha256) values ($1, $2, $3, $4, $5)",
			file, st.Size, st.Lines, st.Words, st.SHA256)
		if err != nil {
			return err
		}
		return complete(s.WithTx(tx))
	})
}

func (s *postgresServer) Totals(ctx context.Context) (Totals, error) {
	var t Totals
	err := s.pool.QueryRow(ctx, `select count(*), coalesce(sum(size), 0)::bigint, coalesce(sum(lines), 0)::bigint,
		coalesce(sum(words), 0)::bigint from `+s.results()).Scan(&t.Files, &t.Size, &t.Lines, &t.Words)
	return t, err
}

// Where names what of the connection string is no secret.
func (s *postgresServer) Where() string {
	at := s.pool.Config().ConnConfig
	return fmt.Sprintf("Jobs and results are kept in the schema %q of the database %q on %s:%d", s.schema, at.Database, at.Host, at.Port)
}

func (s *postgresServer) Owns(string) bool { return false }

// Close closes the store before the pool below it.
func (s *postgresServer) Close() (err error) {
	if s.Store != nil {
		err = s.Store.Close()
	}
	if s.inUse != nil {
		err = errors.Join(err, s.inUse.Close(context.Background()))
	}
	s.pool.Close()
	return err
}

const (
	lockOfSchema = `hashtextextended('quickstart ' || $1::text, 0)`

	sqlHolds = `select count(*) filter (where c.relname = $2), count(*)
		from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = $1`
)

// dropSchema drops the schema if it is quickstart's and no other run is at it. It reports whether there was one.
func dropSchema(ctx context.Context, pool *pgxpool.Pool, schema string) (dropped bool, err error) {
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		var unused bool
		err := tx.QueryRow(ctx, "select pg_try_advisory_xact_lock("+lockOfSchema+")", schema).Scan(&unused)
		if err != nil {
			return err
		}
		if !unused {
			return errors.New("it is in use, so stop the other run first")
		}
		var ours, all int
		if err := tx.QueryRow(ctx, sqlHolds, schema, resultsTable).Scan(&ours, &all); err != nil || all == 0 {
			return err
		}
		if ours == 0 {
			return fmt.Errorf("it holds no table %s: it is somebody else's", resultsTable)
		}
		dropped = true
		_, err = tx.Exec(ctx, "drop schema "+pgx.Identifier{schema}.Sanitize()+" cascade")
		return err
	})
	return dropped && err == nil, err
}
