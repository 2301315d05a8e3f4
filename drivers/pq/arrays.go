package pqstore

import (
	"context"
	"time"

	"github.com/lib/pq"

	"github.com/stintmq/stint/internal/sqlexec"
)

// arrays is an executor that takes slices as arguments, and reads arrays into them. pq does the former by itself,
// but only where nothing wraps its connections.
type arrays struct{ x sqlexec.Executor }

func (a arrays) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	return a.x.Exec(ctx, query, wrapped(args, isSlice)...)
}

func (a arrays) Query(ctx context.Context, query string, args ...any) (sqlexec.Rows, error) {
	rows, err := a.x.Query(ctx, query, wrapped(args, isSlice)...)
	if err != nil {
		return nil, err
	}
	return arrayRows{rows}, nil
}

type arrayRows struct{ sqlexec.Rows }

func (r arrayRows) Scan(dest ...any) error { return r.Rows.Scan(wrapped(dest, isTarget)...) }

// wrapped makes arrays of the values that are slices; values stays as it is.
func wrapped(values []any, slice func(any) bool) []any {
	out := values
	for i, v := range values {
		if !slice(v) {
			continue
		}
		if &out[0] == &values[0] {
			out = append([]any(nil), values...)
		}
		out[i] = pq.Array(v)
	}
	return out
}

// isSlice knows the slices that package pgsql passes; []byte is a value of its own.
func isSlice(v any) bool {
	switch v.(type) {
	case []string, []int16, []int32, []int64, []bool, [][]byte, []time.Time:
		return true
	}
	return false
}

// isTarget knows those that it reads.
func isTarget(v any) bool {
	switch v.(type) {
	case *[]string, *[]int16, *[]int64:
		return true
	}
	return false
}
