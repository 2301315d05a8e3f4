package pgsql

import (
	"context"
	"embed"
	"fmt"
	"io/fs"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/sqlexec"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migrations are the numbered .sql files, for those who run them with a tool of their own. They do not write
// schema_version, which Migrate keeps: such a tool makes it and inserts its row (version, oldest) itself.
func Migrations() fs.FS {
	sub, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return migrations // cannot be: the folder is embedded
	}
	return sub
}

// Version is the schema that this package speaks. A database of a later version that says it still serves this
// one is used as it is, so that a fleet can be upgraded one process at a time.
const Version = 5

// oldest is the version a program must speak to use a schema of Version: what came since adds to it.
const oldest = 1

// needs is the oldest schema that the statements of this package work on.
const needs = 5

// SchemaError is core's.
type SchemaError = core.SchemaError

const (
	sqlHasTable  = `select count(*) from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = $1::text and c.relname = 'schema_version'`
	sqlHasSchema = `select count(*) from pg_namespace where nspname = $1::text`
	sqlVersion   = `select version, oldest from {}.schema_version order by version desc limit 1`
	sqlNewTable  = `create table {}.schema_version (version integer primary key, oldest integer not null)`
	sqlApplied   = `insert into {}.schema_version (version, oldest) values ($1::integer, $2::integer)`

	sqlPatience = `select set_config('lock_timeout', '1s', true)`
	sqlOneOnly  = `select pg_advisory_xact_lock(hashtextextended('stint ' || $1::text, 0))`
	sqlPath     = `select set_config('search_path', $1::text, true)`

	sqlEmptyFiles = `select count(*) from unnest(array['jobs', 'ready', 'delayed', 'leases', 'runs', 'finished', 'dedupe',
			'events', 'entities', 'notes']) name
		where pg_relation_size((quote_ident($1::text) || '.' || name)::regclass) = 0`
)

// CheckSchema returns a *SchemaError unless the schema can be used as it is. It writes nothing.
func (s *Schema) CheckSchema(ctx context.Context, x sqlexec.Executor) error {
	have, serves, err := s.version(ctx, s.In(x))
	if err != nil {
		return err
	}
	if have < needs || serves > Version {
		return &SchemaError{Schema: s.name, Have: have, Want: Version}
	}
	return nil
}

func (s *Schema) version(ctx context.Context, x sqlexec.Executor) (have, serves int, err error) {
	var tables int
	if _, err := sqlexec.One(ctx, x, []any{&tables}, sqlHasTable, s.name); err != nil || tables == 0 {
		return 0, 0, err
	}
	_, err = sqlexec.One(ctx, x, []any{&have, &serves}, sqlVersion)
	return have, serves, err
}

// Migrate brings the schema up to Version, inside a transaction of its own, making it if it is not there. Ten
// processes at once make one schema. A lock that others hold is waited for for a second only, so that nobody queues
// behind a migration that waits: then WaitedTooLong(err), and the caller tries again. Files are run by script,
// which takes several statements and no arguments.
func (s *Schema) Migrate(ctx context.Context, x sqlexec.Executor, script func(ctx context.Context, sql string) error) error {
	x = s.In(x)
	for _, step := range []struct {
		text string
		args []any
	}{{sqlPatience, nil}, {sqlOneOnly, []any{s.name}}} {
		if _, err := x.Exec(ctx, step.text, step.args...); err != nil {
			return err
		}
	}
	have, serves, err := s.version(ctx, x)
	if err != nil {
		return err
	}
	if serves > Version {
		return &SchemaError{Schema: s.name, Have: have, Want: Version}
	}
	if have < Version {
		if err := s.build(ctx, x, script, have); err != nil {
			return err
		}
	}
	return s.seed(ctx, x)
}

// WaitedTooLong reports whether Migrate gave up for a lock.
func WaitedTooLong(err error) bool { return SQLState(err) == stateLockTimeout }

func (s *Schema) build(ctx context.Context, x sqlexec.Executor, script func(ctx context.Context, sql string) error, have int) error {
	if have == 0 {
		var there int
		if _, err := sqlexec.One(ctx, x, []any{&there}, sqlHasSchema, s.name); err != nil {
			return err
		}
		if there == 0 { // "if not exists" asks for a right that nobody needs to have
			if err := script(ctx, `create schema `+quoteName(s.name)); err != nil {
				return err
			}
		}
		if _, err := x.Exec(ctx, sqlNewTable); err != nil {
			return err
		}
	}
	if _, err := x.Exec(ctx, sqlPath, quoteName(s.name)); err != nil {
		return err
	}
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return err
	}
	for n, file := range files {
		version := n + 1
		if version <= have {
			continue
		}
		text, err := fs.ReadFile(migrations, file)
		if err != nil {
			return err
		}
		if err := script(ctx, string(text)); err != nil {
			return fmt.Errorf("stint: migration %s: %w", file, err)
		}
		if _, err := x.Exec(ctx, sqlApplied, version, oldest); err != nil {
			return err
		}
	}
	return nil
}

// sqlSeed fills a table with rows and empties it. A table that has pages is never planned for as if reading all of
// it were free: statements that an idle worker prepares today are what runs with a million jobs tomorrow. The tables
// keep their pages (vacuum_truncate = off), but a dump that is restored, or VACUUM FULL, brings new ones.
var sqlSeed = []string{
	`insert into {}.jobs (seq, enqueued_at, run_at, max_attempts, max_stalls, priority, queue, name)
		select -n, now(), now(), 1, 0, 0, '', '' from generate_series(1, 20000) n`,
	`insert into {}.ready (seq, place, run_at, fence, bytes, attempts, stalls, snoozes, runs, priority, queue, name)
		select -n, -n, now(), 0, 0, 0, 0, 0, 0, 0, '', '' from generate_series(1, 20000) n`,
	`insert into {}.delayed (seq, run_at, fence, bytes, attempts, stalls, snoozes, runs, priority, queue, name)
		select -n, now(), 0, 0, 0, 0, 0, 0, 0, '', '' from generate_series(1, 20000) n`,
	`insert into {}.leases (seq, place, run_at, fence, until, claimed_at, token, bytes, attempts, stalls, snoozes, runs, priority,
			queue, name, worker)
		select -n, -n, now(), 0, now(), now(), '00000000-0000-0000-0000-000000000000', 0, 0, 0, 0, 0, 0, '', '', ''
		from generate_series(1, 20000) n`,
	`insert into {}.runs (seq, finished_at, number, answered, outcome) select -n, now(), 1, 1, '' from generate_series(1, 20000) n`,
	`insert into {}.finished (seq, finished_at, run_at, fence, attempts, stalls, snoozes, runs, state, queue, name, outcome)
		select -n, now(), now(), 0, 0, 0, 0, 0, 5, '', '', '' from generate_series(1, 20000) n`,
	`insert into {}.dedupe (seq, turn, was, name, key) select -n, -n, 0, '', n::text from generate_series(1, 20000) n`,
	`insert into {}.events (seq, version, at, causation, schema, kind, entity, type, correlation, meta, payload) overriding system value
		select -n, 1, now(), 0, 0, '', n::text, '', '', '', '' from generate_series(1, 20000) n`,
	`insert into {}.entities (version, kind, id) select -1, '', n::text from generate_series(1, 20000) n`,
	`insert into {}.notes (space, key, value) select '', n::text, '' from generate_series(1, 20000) n`,
	`delete from {}.dedupe where seq < 0`, `delete from {}.events where seq < 0`, `delete from {}.entities where version < 0`,
	`delete from {}.notes where space = ''`,
	`delete from {}.jobs where seq < 0`, `delete from {}.ready where seq < 0`, `delete from {}.delayed where seq < 0`,
	`delete from {}.leases where seq < 0`, `delete from {}.runs where seq < 0`, `delete from {}.finished where seq < 0`,
}

func (s *Schema) seed(ctx context.Context, x sqlexec.Executor) error {
	var empty int
	if _, err := sqlexec.One(ctx, x, []any{&empty}, sqlEmptyFiles, s.name); err != nil || empty == 0 {
		return err
	}
	for _, text := range sqlSeed {
		if _, err := x.Exec(ctx, text); err != nil {
			return err
		}
	}
	return nil
}
