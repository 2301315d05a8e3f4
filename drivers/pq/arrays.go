package pqstore

import (
	"context"
	"encoding/hex"
	"slices"
	"time"

	"github.com/lib/pq"

	"github.com/stintmq/stint/internal/sqlexec"
)

// arrays is an executor that takes slices as arguments, and reads arrays into them. pq does the former by itself,
// but only where nothing wraps its connections.
type arrays struct{ x sqlexec.Executor }

func (a arrays) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	return a.x.Exec(ctx, query, wrapped(args, argument)...)
}

func (a arrays) Query(ctx context.Context, query string, args ...any) (sqlexec.Rows, error) {
	rows, err := a.x.Query(ctx, query, wrapped(args, argument)...)
	if err != nil {
		return nil, err
	}
	return arrayRows{rows}, nil
}

type arrayRows struct{ sqlexec.Rows }

func (r arrayRows) Scan(dest ...any) error { return r.Rows.Scan(wrapped(dest, target)...) }

// wrapped replaces those values that as has something for; values stays as it is.
func wrapped(values []any, as func(any) (any, bool)) []any {
	out := values
	for i, v := range values {
		w, ok := as(v)
		if !ok {
			continue
		}
		if &out[0] == &values[0] {
			out = slices.Clone(values)
		}
		out[i] = w
	}
	return out
}

// argument knows the slices that package pgsql passes; []byte is a value of its own.
func argument(v any) (any, bool) {
	switch v := v.(type) {
	case [][]byte:
		return byteas(v), true
	case []string, []int16, []int32, []int64, []bool, []time.Time:
		return pq.Array(v), true
	}
	return nil, false
}

// byteas is an array of bytes as text. pq's own makes an empty value of none.
func byteas(values [][]byte) string {
	size := 2
	for _, v := range values {
		size += len(`"\\x",`) + hex.EncodedLen(len(v))
	}
	text := append(make([]byte, 0, size), '{')
	for i, v := range values {
		if i > 0 {
			text = append(text, ',')
		}
		if v == nil {
			text = append(text, "NULL"...)
			continue
		}
		text = append(text, `"\\x`...)
		text = append(hex.AppendEncode(text, v), '"')
	}
	return string(append(text, '}'))
}

// target knows those that it reads.
func target(v any) (any, bool) {
	switch v := v.(type) {
	case *[]int16:
		return (*smallints)(v), true
	case *[]string, *[]int64:
		return pq.Array(v), true
	}
	return nil, false
}

// smallints reads what pq has no array for.
type smallints []int16

// Scan implements sql.Scanner.
func (s *smallints) Scan(src any) error {
	var wide pq.Int64Array
	if err := wide.Scan(src); err != nil {
		return err
	}
	*s = nil
	for _, n := range wide {
		*s = append(*s, int16(n))
	}
	return nil
}
