// Postgres runs a little shop on Postgres, three times over: through pgx, through database/sql with lib/pq, and through
// bun. All three share one schema. Each takes orders, and each runs a worker, which ships what the others sold.
//
//	go run ./examples/postgres -dsn 'postgres://postgres:stint@localhost:5432/postgres?sslmode=disable'
//
// An order and the job that ships it are written by one transaction, so an order whose payment is declined leaves
// neither behind. The shipment and the end of its job are one transaction as well, so no order is shipped twice.
//
// pgx.go, pq.go and bun.go are the same program in three dialects: read the one that you speak. Everything is kept in the
// schema "stint_example"; "drop schema stint_example cascade" takes it away.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// noDSN is what to do about it.
const noDSN = `name a Postgres database with -dsn, or in STINT_TEST_POSTGRES. One to try this on:

  docker run --rm -d --name stint-postgres -p 5432:5432 -e POSTGRES_PASSWORD=stint postgres:18
  go run ./examples/postgres -dsn 'postgres://postgres:stint@localhost:5432/postgres?sslmode=disable'
  docker stop stint-postgres`

// config is what the command line asks for.
type config struct {
	dsn    string // never printed
	schema string
	orders int // per shop
}

func main() {
	cfg := config{schema: "stint_example"}
	flag.StringVar(&cfg.dsn, "dsn", "", "connection string of a Postgres database, in which a schema may be created (default $STINT_TEST_POSTGRES)")
	flag.IntVar(&cfg.orders, "orders", 20, "orders that each shop takes, at least 3")
	flag.Parse()
	if cfg.dsn == "" {
		cfg.dsn = os.Getenv("STINT_TEST_POSTGRES")
	}
	if cfg.dsn == "" || cfg.orders < 3 || flag.NArg() > 0 {
		why := noDSN
		if cfg.dsn != "" {
			why = "-orders must be at least 3, and nothing may follow the flags"
		}
		fmt.Fprintln(os.Stderr, "postgres:", why)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, cfg, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "postgres:", err)
		os.Exit(1)
	}
}

var errDSN = errors.New("the connection string is not one that Postgres takes; it is not shown, since it may hold a password")

// run is the whole program.
func run(ctx context.Context, cfg config, out io.Writer) (err error) {
	at, err := pgx.ParseConfig(cfg.dsn)
	if err != nil {
		return errDSN // err quotes it
	}
	printf(out, "shops open in the schema %q of the database %q on %s:%d\n", cfg.schema, at.Database, at.Host, at.Port)

	var shops []shop
	defer func() {
		for _, s := range shops {
			err = errors.Join(err, s.Close())
		}
	}()
	// Any of them can make the tables, and the others find them there. In production that is a step of the deployment.
	for _, open := range []func(context.Context, config) (shop, error){openPgx, openPq, openBun} {
		s, err := open(ctx, cfg)
		if err != nil {
			return err
		}
		shops = append(shops, s)
	}

	sold, err := sell(ctx, shops, cfg.orders, out)
	if err != nil {
		return err
	}
	if err := ship(ctx, shops, sold, out); err != nil {
		return err
	}
	return report(ctx, shops, out)
}

func printf(out io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(out, format, args...) // a reader that is gone is no reason to stop working
}
