package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/stintmq/stint/internal/pgtest"
)

// settings of the server, over Postgres's defaults and a sync of every commit.
func settings(cfg Config) map[string]string {
	s := map[string]string{"shared_buffers": "1GB", "max_wal_size": "1GB", "max_connections": "300"}
	if cfg.Statements {
		s["shared_preload_libraries"] = "pg_stat_statements"
	}
	for pair := range strings.SplitSeq(cfg.Settings, ",") {
		if name, value, ok := strings.Cut(pair, "="); ok {
			s[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	return s
}

// withServer lends a server that ends with f.
func withServer(cfg Config, f func(dsn string) error) (err error) {
	h := &host{}
	defer func() {
		if v := recover(); v != nil {
			failed, ok := v.(failure)
			if !ok {
				panic(v)
			}
			err = failed
		}
		for _, end := range h.cleanups {
			end()
		}
		err = errors.Join(err, h.err)
	}()
	return f(pgtest.Start(h, pgtest.Options{Durable: true, Settings: settings(cfg)}).DSN())
}

// host is as much of a test as a throw-away cluster needs to live in.
type host struct {
	testing.TB
	cleanups []func()
	err      error
}

type failure struct{ error }

func (h *host) Helper()          {}
func (h *host) Failed() bool     { return h.err != nil }
func (h *host) Cleanup(f func()) { h.cleanups = append(h.cleanups, f) }
func (h *host) Logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}
func (h *host) Errorf(format string, args ...any) {
	h.err = errors.Join(h.err, fmt.Errorf(format, args...))
}
func (h *host) Fatalf(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

// withDatabase lends a new, empty database of the server, and drops it after f.
func withDatabase(ctx context.Context, dsn, name string, f func(dsn string) error) (err error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	quoted := pgx.Identifier{name}.Sanitize()
	// What the contender before left to write is its own: nobody else pays for it.
	for _, statement := range []string{"create database " + quoted + " template template0", "checkpoint"} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	u, err := url.Parse(dsn)
	if err != nil {
		return err
	}
	u.Path = "/" + name
	err = f(u.String())
	_, dropErr := conn.Exec(context.WithoutCancel(ctx), "drop database "+quoted+" with (force)")
	return errors.Join(err, dropErr)
}
