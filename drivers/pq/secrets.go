package pqstore

import (
	"fmt"
	"log/slog"

	"github.com/stintmq/stint/internal/pgstore/pgstd"
)

// hidden stands for what nobody may read.
const hidden = "(hidden)"

// String is what may be printed of the options: no DSN.
func (o Options) String() string {
	dsn := ""
	if o.DSN != "" {
		dsn = hidden
	}
	return fmt.Sprintf("{DSN:%s Schema:%s}", dsn, o.Schema)
}

// GoString is String.
func (o Options) GoString() string { return "pqstore.Options" + o.String() }

// LogValue is String.
func (o Options) LogValue() slog.Value { return slog.StringValue(o.String()) }

// String names the store, and shows nothing of its options.
func (s *Store) String() string {
	return fmt.Sprintf("pqstore.Store{Schema:%s}", pgstd.SchemaOf(s.store))
}

// GoString is String.
func (s *Store) GoString() string { return s.String() }
