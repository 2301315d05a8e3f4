package pgstd

import (
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/stintmq/stint/internal/sqlexec"
	"github.com/stintmq/stint/internal/stdsql"
)

// arrays is an executor that takes slices as arguments, and reads arrays into them. Both travel as text, which every
// library passes on as it is: database/sql knows no slices.
type arrays struct{ x sqlexec.Executor }

func (a arrays) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	return a.x.Exec(ctx, query, replaced(args, argument)...)
}

func (a arrays) Query(ctx context.Context, query string, args ...any) (sqlexec.Rows, error) {
	rows, err := a.x.Query(ctx, query, replaced(args, argument)...)
	if err != nil {
		return nil, err
	}
	return &arrayRows{Rows: rows}, nil
}

// arrayRows remembers what it made of the last row's destinations: most rows are read into the same ones.
type arrayRows struct {
	sqlexec.Rows
	dest, into []any
}

func (r *arrayRows) Scan(dest ...any) error {
	if !slices.Equal(dest, r.dest) {
		r.dest, r.into = slices.Clone(dest), replaced(dest, target)
	}
	return r.Rows.Scan(r.into...)
}

// replaced replaces those values that as has something for; values stays as it is.
func replaced(values []any, as func(any) (any, bool)) []any {
	out, own := values, false
	for i, v := range values {
		w, ok := as(v)
		if !ok {
			continue
		}
		if !own {
			out, own = slices.Clone(values), true
		}
		out[i] = w
	}
	return out
}

// argument knows the slices and times that package pgsql passes; []byte is a value of its own.
func argument(v any) (any, bool) {
	switch v := v.(type) {
	case []string:
		return array(v, appendText), true
	case [][]byte:
		return array(v, appendBytes), true
	case []int16:
		return array(v, appendInt), true
	case []int32:
		return array(v, appendInt), true
	case []int64:
		return array(v, appendInt), true
	case []bool:
		return array(v, strconv.AppendBool), true
	case []time.Time:
		return array(v, appendTime), true
	case time.Time: // pgdriver takes the zero time for NULL
		return timestamp(v), true
	}
	return nil, false
}

// array is an array as text, or NULL for none.
func array[T any](values []T, element func([]byte, T) []byte) any {
	if values == nil {
		return nil
	}
	text := append(make([]byte, 0, 2+16*len(values)), '{')
	for i, v := range values {
		if i > 0 {
			text = append(text, ',')
		}
		text = element(text, v)
	}
	return string(append(text, '}'))
}

func appendText(text []byte, v string) []byte {
	text = append(text, '"')
	for i := range len(v) {
		if v[i] == '"' || v[i] == '\\' {
			text = append(text, '\\')
		}
		text = append(text, v[i])
	}
	return append(text, '"')
}

// appendBytes tells no bytes from empty ones.
func appendBytes(text []byte, v []byte) []byte {
	if v == nil {
		return append(text, "NULL"...)
	}
	text = append(slices.Grow(text, hex.EncodedLen(len(v))+6), `"\\x`...)
	return append(hex.AppendEncode(text, v), '"')
}

func appendInt[T int16 | int32 | int64](text []byte, v T) []byte {
	return strconv.AppendInt(text, int64(v), 10)
}

func appendTime(text []byte, v time.Time) []byte { return appendText(text, timestamp(v)) }

// timestamp writes years before the first as Postgres reads them.
func timestamp(v time.Time) string {
	v = v.UTC()
	year, era := v.Year(), ""
	if year <= 0 {
		year, era = 1-year, " BC"
	}
	return fmt.Sprintf("%04d", year) + v.Format("-01-02 15:04:05.999999Z") + era
}

// target knows those that it reads.
func target(v any) (any, bool) {
	switch v := v.(type) {
	case *[]string:
		return scanner[string]{v, func(s string) (string, error) { return s, nil }}, true
	case *[]int16:
		return scanner[int16]{v, func(s string) (int16, error) {
			n, err := strconv.ParseInt(s, 10, 16)
			return int16(n), err
		}}, true
	case *[]int64:
		return scanner[int64]{v, func(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) }}, true
	}
	return nil, false
}

// scanner reads an array into a slice; NULL is none.
type scanner[T any] struct {
	into    *[]T
	element func(string) (T, error)
}

// Scan implements sql.Scanner.
func (s scanner[T]) Scan(src any) error {
	var text string
	switch src := src.(type) {
	case nil:
		*s.into = nil
		return nil
	case string:
		text = src
	case []byte:
		text = string(src)
	default:
		return fmt.Errorf("stint: an array came as %T", src)
	}
	elements, ok := split(text)
	if !ok {
		return fmt.Errorf("stint: %q is not an array", text)
	}
	*s.into = make([]T, len(elements))
	for i, e := range elements {
		var err error
		if (*s.into)[i], err = s.element(e); err != nil {
			return err
		}
	}
	return nil
}

// split takes an array of one dimension and without NULL apart.
func split(text string) (elements []string, ok bool) {
	if len(text) < 2 || text[0] != '{' || text[len(text)-1] != '}' {
		return nil, false
	}
	text = text[1 : len(text)-1]
	if text == "" {
		return nil, true
	}
	var element []byte
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			if i++; i == len(text) {
				return nil, false
			}
			element = append(element, text[i])
		case c == '"':
			quoted = !quoted
		case c == ',' && !quoted:
			elements, element = append(elements, string(element)), element[:0]
		default:
			element = append(element, c)
		}
	}
	return append(elements, string(element)), !quoted
}

// In runs statements in a transaction, with what package pgsql passes.
func In(tx *sql.Tx) sqlexec.Executor { return arrays{stdsql.In(tx)} }
