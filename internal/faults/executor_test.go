package faults_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/internal/faults"
	"github.com/stintmq/stint/internal/sqlexec"
)

var errBroken = errors.New("connection broken")

// recording is a database of which each query has three rows, 1 to 3.
type recording struct{ did []string }

func (r *recording) Exec(_ context.Context, query string, _ ...any) (int64, error) {
	r.did = append(r.did, query)
	return 1, nil
}

func (r *recording) Query(_ context.Context, query string, _ ...any) (sqlexec.Rows, error) {
	return &threeRows{done: func() { r.did = append(r.did, query) }}, nil
}

// threeRows are done once all of them were read.
type threeRows struct {
	at   int
	done func()
}

func (r *threeRows) Next() bool {
	r.at++
	if r.at == 4 {
		r.done()
	}
	return r.at <= 3
}

func (r *threeRows) Scan(dest ...any) error {
	*dest[0].(*int) = r.at
	return nil
}

func (r *threeRows) Err() error   { return nil }
func (r *threeRows) Close() error { return nil }

func TestExecutorFailsAtAStatement(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		moment faults.Moment
		did    []string
		rows   int
	}{
		{faults.Before, []string{"one"}, 0},
		{faults.Midway, []string{"one", "two"}, 1},
		{faults.After, []string{"one", "two"}, 0},
	} {
		for _, query := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s query=%v", c.moment, query), func(t *testing.T) {
				db := &recording{}
				x := &faults.Executor{Executor: db, At: 2, Moment: c.moment, Err: errBroken}
				n, err := x.Exec(ctx, "one")
				require.NoError(t, err)
				require.EqualValues(t, 1, n)
				require.False(t, x.Struck())
				rows := 0
				if query {
					err = sqlexec.Each(ctx, x, func(r sqlexec.Rows) error {
						rows++
						var n int
						return r.Scan(&n)
					}, "two")
					require.Equal(t, c.rows, rows)
				} else {
					_, err = x.Exec(ctx, "two")
				}
				require.ErrorIs(t, err, errBroken)
				require.True(t, x.Struck())
				_, err = x.Exec(ctx, "three")
				require.ErrorIs(t, err, errBroken)
				_, err = x.Query(ctx, "four")
				require.ErrorIs(t, err, errBroken)
				require.Equal(t, c.did, db.did)
				require.Equal(t, 4, x.Statements())
			})
		}
	}
}

func TestExecutorWithoutAFault(t *testing.T) {
	x := &faults.Executor{Executor: &recording{}, Err: errBroken}
	var n int
	found, err := sqlexec.One(context.Background(), x, []any{&n}, "one")
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, 1, n)
	require.False(t, x.Struck())
}
