package litesql

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
// stint_schema, which Migrate keeps: such a tool inserts its row (version, oldest) itself.
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

const (
	sqlSchemaTable = `select count(*) from sqlite_schema where type = 'table' and name = 'stint_schema'`
	sqlSchema      = `select version, oldest from stint_schema order by version desc limit 1`
	sqlNewSchema   = `create table if not exists stint_schema (version integer primary key, oldest integer not null) strict`
	sqlStatTables  = `select name from sqlite_schema where name in ('sqlite_stat1', 'sqlite_stat4')`
	sqlReloadStats = `analyze sqlite_schema` // analyses nothing: there is nothing in it
	sqlApplied     = `insert into stint_schema values (?, ?)`
)

// CheckSchema returns a *core.SchemaError unless the database's schema can be used as it is. It writes nothing.
func CheckSchema(ctx context.Context, x sqlexec.Executor) error {
	have, serves, err := schemaVersion(ctx, x)
	if err != nil {
		return err
	}
	if have < needs || serves > Version {
		return &core.SchemaError{Have: have, Want: Version}
	}
	return nil
}

func schemaVersion(ctx context.Context, x sqlexec.Executor) (have, serves int, err error) {
	var tables int
	if _, err := sqlexec.One(ctx, x, []any{&tables}, sqlSchemaTable); err != nil || tables == 0 {
		return 0, 0, err
	}
	_, err = sqlexec.One(ctx, x, []any{&have, &serves}, sqlSchema)
	return have, serves, err
}

// Migrate brings the schema up to Version, inside a transaction that holds the write lock already: so ten
// processes at once make one schema.
func Migrate(ctx context.Context, x sqlexec.Executor) error {
	have, serves, err := schemaVersion(ctx, x)
	if err != nil {
		return err
	}
	if serves > Version {
		return &core.SchemaError{Have: have, Want: Version}
	}
	if err := forgetStatistics(ctx, x); err != nil || have >= Version {
		return err
	}
	if _, err := x.Exec(ctx, sqlNewSchema); err != nil {
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
		if _, err := x.Exec(ctx, string(text)); err != nil {
			return fmt.Errorf("stint: migration %s: %w", file, err)
		}
		if _, err := x.Exec(ctx, sqlApplied, version, oldest); err != nil {
			return err
		}
	}
	return nil
}

// forgetStatistics drops what an ANALYZE left about our tables. Of a queue that was nearly empty that day it says
// that reading all of a table is as good as looking up one row, and SQLite then does so with a million rows,
// in every join. Without statistics it takes the tables for large, and every plan is a search.
func forgetStatistics(ctx context.Context, x sqlexec.Executor) error {
	tables, err := statTables(ctx, x)
	if err != nil {
		return err
	}
	var forgotten int64
	for _, table := range tables {
		n, err := x.Exec(ctx, "delete from "+table+" where "+ourStats)
		if err != nil {
			return err
		}
		forgotten += n
	}
	if forgotten > 0 {
		_, err = x.Exec(ctx, sqlReloadStats)
	}
	return err
}

// Tidy reports whether there are no statistics to forget. It writes nothing.
func Tidy(ctx context.Context, x sqlexec.Executor) (bool, error) {
	tables, err := statTables(ctx, x)
	if err != nil {
		return false, err
	}
	for _, table := range tables {
		var one int
		found, err := sqlexec.One(ctx, x, []any{&one}, "select 1 from "+table+" where "+ourStats+" limit 1")
		if err != nil || found {
			return false, err
		}
	}
	return true, nil
}

const ourStats = "tbl glob 'stint_*'"

// statTables are the tables that an ANALYZE left.
func statTables(ctx context.Context, x sqlexec.Executor) (tables []string, err error) {
	err = sqlexec.Each(ctx, x, func(r sqlexec.Rows) error {
		var name string
		err := r.Scan(&name)
		tables = append(tables, name)
		return err
	}, sqlStatTables)
	return tables, err
}

// Touch reads the first row of every table, so that a damaged file is found before it is written to.
func Touch(ctx context.Context, x sqlexec.Executor) error {
	for _, table := range []string{"counter", "lanes", "jobs", "work", "finished", "runs", "paused", "wake", "dedupe", "schedules", "events", "cursors", "notes"} {
		text := "select 1 from stint_" + table + " order by 1 limit 1"
		if err := sqlexec.Each(ctx, x, func(sqlexec.Rows) error { return nil }, text); err != nil {
			return err
		}
	}
	return nil
}
