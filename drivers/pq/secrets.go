package pqstore

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"

	"github.com/lib/pq"

	"github.com/stintmq/stint/core"
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

// secrets are what errors must not show.
type secrets struct{ words []string }

// secretsOf reads a DSN. What is wrong with one that can't be read stays unsaid: such errors quote it.
func secretsOf(dsn string) (*secrets, error) {
	if dsn == "" {
		return &secrets{}, nil
	}
	cfg, err := pq.NewConfig(dsn)
	if err != nil {
		return nil, &core.InvalidError{Field: "DSN", Reason: "is not a connection string that lib/pq takes"}
	}
	s := &secrets{words: []string{dsn}}
	if cfg.Password != "" {
		s.words = append(s.words, cfg.Password, url.QueryEscape(cfg.Password), url.PathEscape(cfg.Password))
	}
	return s, nil
}

// hide returns err, or what may be said of it.
func (s *secrets) hide(err error) error {
	if err == nil {
		return nil
	}
	for _, word := range s.words {
		if strings.Contains(err.Error(), word) {
			return errors.New("stint: the connection that listens failed; the error quotes the DSN and is not shown")
		}
	}
	return err
}
