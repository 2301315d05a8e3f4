package robust_test

import (
	"context"
	"database/sql"
	"errors"

	_ "github.com/lib/pq"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/driver/pgdriver"

	"github.com/stintmq/stint/core"
	bunstore "github.com/stintmq/stint/drivers/bun"
	pqstore "github.com/stintmq/stint/drivers/pq"
)

func pqDriver() driver {
	return driver{
		name:   "pq",
		commit: "COMMIT\x00",
		open: func(ctx context.Context, o openOptions) (*store, error) {
			db, err := sql.Open("postgres", o.at.dsn())
			if err != nil {
				return nil, err
			}
			limit(db, o.conns)
			s, err := pqstore.New(db, pqstore.Options{DSN: o.at.dsn(), Schema: o.schema})
			if err != nil {
				return nil, errors.Join(err, db.Close())
			}
			view := func(tx *sql.Tx) core.TxView { return s.WithTx(tx) }
			return onSQL(s, s, s, s, db, view, s.Close), nil
		},
		migrate: func(ctx context.Context, at target, schema string) error {
			db, err := sql.Open("postgres", at.dsn())
			if err != nil {
				return err
			}
			return errors.Join(pqstore.Migrate(ctx, db, schema), db.Close())
		},
	}
}

// bunDriver is bun over its own pgdriver.
func bunDriver() driver {
	return driver{
		name:   "bun",
		commit: "COMMIT\x00",
		open: func(ctx context.Context, o openOptions) (*store, error) {
			db := openBun(o.at)
			limit(db.DB, o.conns)
			s, err := bunstore.New(db, bunstore.Options{Schema: o.schema})
			if err != nil {
				return nil, errors.Join(err, db.Close())
			}
			view := func(tx *sql.Tx) core.TxView { return s.WithTx(bun.Tx{Tx: tx}) }
			return onSQL(s, s, s, s, db.DB, view, s.Close), nil
		},
		migrate: func(ctx context.Context, at target, schema string) error {
			db := openBun(at)
			return errors.Join(bunstore.Migrate(ctx, db, bunstore.Options{Schema: schema}), db.Close())
		},
		refuses: []string{"standard_conforming_strings to off", "client_encoding to 'LATIN1'", "client_encoding to 'SQL_ASCII'"},
	}
}

func openBun(at target) *bun.DB {
	return bun.NewDB(sql.OpenDB(pgdriver.NewConnector(pgdriver.WithDSN(at.dsn()))), pgdialect.New())
}

// limit leaves an application so many connections of its pool, beside the most that a store keeps for itself.
func limit(db *sql.DB, conns int) {
	const kept = 6
	if conns > 0 {
		db.SetMaxOpenConns(kept + conns)
	}
}

// onSQL is a store over database/sql.
func onSQL(
	s core.Store, i core.Inspector, a core.Admin, c core.Scheduler, db *sql.DB, view func(*sql.Tx) core.TxView, end func() error,
) *store {
	return &store{
		Store: s, Inspector: i, Admin: a, Scheduler: c,
		inTx: func(ctx context.Context, do func(core.TxView, execFunc) error) error {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			err = do(view(tx), func(ctx context.Context, sql string, args ...any) error {
				_, err := tx.ExecContext(ctx, sql, args...)
				return err
			})
			if err != nil {
				return errors.Join(err, tx.Rollback())
			}
			return tx.Commit()
		},
		close: func() error { return errors.Join(end(), db.Close()) },
	}
}
