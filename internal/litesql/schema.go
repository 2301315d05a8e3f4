package litesql

import (
	"context"
	"embed"
	"fmt"
	"io/fs"

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
const Version = 1

// oldest is the version a program must speak to use a schema of Version.
const oldest = 1

// SchemaError: the database's schema is not one that this release can use.
type SchemaError struct {
	Have int // the database's version; 0: it has no stint schema
	Want int // the version that this release speaks
}

func (e *SchemaError) Error() string {
	switch {
	case e.Have == 0:
		return "stint: the database has no stint schema; run Migrate"
	case e.Have < e.Want:
		return fmt.Sprintf("stint: the database has schema version %d, this release needs %d; run Migrate", e.Have, e.Want)
	default:
		return fmt.Sprintf("stint: the database has schema version %d, newer than %d, which is all this release knows; "+
			"use a newer release", e.Have, e.Want)
	}
}

const (
	sqlSchemaTable = `select count(*) from sqlite_schema where type = 'table' and name = 'stint_schema'`
	sqlSchema      = `select version, oldest from stint_schema order by version desc limit 1`
	sqlNewSchema   = `create table if not exists stint_schema (version integer primary key, oldest integer not null) strict`
	sqlApplied     = `insert into stint_schema values (?, ?)`
)

// CheckSchema returns a *SchemaError unless the database's schema can be used as it is. It writes nothing.
func CheckSchema(ctx context.Context, x sqlexec.Executor) error {
	have, serves, err := schemaVersion(ctx, x)
	if err != nil {
		return err
	}
	if have < Version || serves > Version {
		return &SchemaError{Have: have, Want: Version}
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
		return &SchemaError{Have: have, Want: Version}
	}
	if have >= Version {
		return nil
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

// Touch reads the first row of every table, so that a damaged file is found before it is written to.
func Touch(ctx context.Context, x sqlexec.Executor) error {
	for _, table := range []string{"counter", "lanes", "jobs", "work", "finished", "runs", "paused", "wake"} {
		text := "select 1 from stint_" + table + " order by 1 limit 1"
		if err := sqlexec.Each(ctx, x, func(sqlexec.Rows) error { return nil }, text); err != nil {
			return err
		}
	}
	return nil
}
