package pgsql

import (
	"context"
	"strings"
	"sync"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/sqlexec"
)

// Statements are written with {}. in front of a table and {numbers} for the sequence; a Schema puts its name there.

// Schema is the Postgres schema that holds a store's tables, by any name. It is safe for concurrent use.
type Schema struct {
	name     string
	replacer *strings.Replacer
	texts    sync.Map // statement as written -> as sent
}

// maxSchemaName is what Postgres keeps of a name, in bytes; it cuts off the rest without an error.
const maxSchemaName = 63

// ValidateSchema refuses a name that Postgres would not take as it is.
func ValidateSchema(name string) error {
	if name == "" || len(name) > maxSchemaName || !sane(name) {
		return &core.InvalidError{Field: "Schema", Reason: "must be 1 to 63 bytes of valid UTF-8 without NUL"}
	}
	return nil
}

// NewSchema returns the schema of a name that ValidateSchema takes.
func NewSchema(name string) *Schema {
	return &Schema{
		name: name,
		replacer: strings.NewReplacer("{}.", spelledName(name)+".", "{numbers}", quoteText(quoteName(name)+".numbers")+"::regclass",
			"{events}", quoteText(quoteName(name)+".events")+"::regclass"),
	}
}

// Name is the schema's name, as it was given.
func (s *Schema) Name() string { return s.name }

func quoteName(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

// spelledName is quoteName without what makes libraries that format arguments into texts, as pgdriver does, take part
// of a name for the beginning of a string or for an argument.
func spelledName(s string) string {
	if !strings.ContainsAny(s, "'$") {
		return quoteName(s)
	}
	return "U&" + quoteName(strings.NewReplacer(`\`, `\\`, "'", `\0027`, "$", `\0024`).Replace(s))
}

// quoteText is s as a literal, whatever standard_conforming_strings says, and spelled as names are.
func quoteText(s string) string {
	if !strings.ContainsAny(s, `'$\`) {
		return "'" + s + "'"
	}
	return " E'" + strings.NewReplacer(`\`, `\\`, "'", `\047`, "$", `\044`).Replace(s) + "'"
}

func (s *Schema) text(statement string) string {
	if t, ok := s.texts.Load(statement); ok {
		return t.(string)
	}
	t := s.replacer.Replace(statement)
	s.texts.Store(statement, t)
	return t
}

// In is an executor for which x's statements are about this schema.
func (s *Schema) In(x sqlexec.Executor) sqlexec.Executor { return inSchema{x, s} }

type inSchema struct {
	x sqlexec.Executor
	s *Schema
}

func (i inSchema) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	return i.x.Exec(ctx, i.s.text(query), args...)
}

func (i inSchema) Query(ctx context.Context, query string, args ...any) (sqlexec.Rows, error) {
	return i.x.Query(ctx, i.s.text(query), args...)
}
