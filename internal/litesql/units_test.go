package litesql

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/stintmq/stint/core"
)

func TestOwnIDs(t *testing.T) {
	seq, ok := seqOf(ownID(17))
	require.True(t, ok)
	require.EqualValues(t, 17, seq)
	for _, id := range []string{"", "17", "#", "#0", "#-1", "#+1", "#007", "#1 ", "# 1", "#1e3", "#99999999999999999999", "#١"} {
		_, ok := seqOf(id)
		require.False(t, ok, id)
	}
}

func TestCursors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := core.Query{
			OrderBy:   rapid.SampledFrom([]core.OrderBy{core.OrderEnqueued, core.OrderRun, core.OrderFinished}).Draw(t, "order"),
			Ascending: rapid.Bool().Draw(t, "ascending"),
		}
		p := position{rapid.Int64().Draw(t, "at"), rapid.Int64().Draw(t, "seq")}
		q.Cursor = cursorText(q, p)
		got, err := readCursor(q)
		require.NoError(t, err)
		require.Equal(t, p, got)
		q.Ascending = !q.Ascending
		_, err = readCursor(q)
		require.Error(t, err)
	})
	rapid.Check(t, func(t *rapid.T) {
		_, err := readCursor(core.Query{Cursor: "x" + rapid.String().Draw(t, "cursor")})
		var invalid *core.InvalidError
		require.ErrorAs(t, err, &invalid)
	})
}

func TestMicrosRoundsUp(t *testing.T) {
	for d, want := range map[time.Duration]int64{0: 0, 1: 1, 999: 1, 1000: 1, 1001: 2, 1<<63 - 1: 9223372036854776} {
		require.Equal(t, want, micros(d))
	}
}

// sqliteError is an error as drivers show SQLite's.
type sqliteError int

func (e sqliteError) Error() string { return fmt.Sprintf("code %d", int(e)) }
func (e sqliteError) Code() int     { return int(e) }

// TestFaults: an outage is never called a data fault, nor the other way round (Q22).
func TestFaults(t *testing.T) {
	var invalid *core.InvalidError
	for _, code := range []sqliteError{5, 6, 8, 10, 10 | 4<<8, 13, 14, 11, 26, 517} {
		require.ErrorIs(t, Fault(code), core.ErrUnavailable)
		require.False(t, errors.As(Fault(code), &invalid))
	}
	for _, code := range []sqliteError{18, 19, 19 | 8<<8, 20, 25} {
		require.ErrorAs(t, Fault(code), &invalid)
		require.NotErrorIs(t, Fault(code), core.ErrUnavailable)
	}
	for _, answer := range []error{core.ErrNotFound, core.ErrLeaseLost, &core.StateError{}, &core.InvalidError{}, &core.SchemaError{}} {
		require.Equal(t, answer, Fault(answer))
	}
	require.NoError(t, Fault(nil))

	require.NoError(t, CommitFault(nil))
	for _, code := range []sqliteError{5, 9, 13} {
		require.ErrorIs(t, CommitFault(code), core.ErrUnavailable)
	}
	require.ErrorIs(t, CommitFault(sqliteError(10)), core.ErrUnknown)
	require.ErrorIs(t, CommitFault(errors.New("?")), core.ErrUnknown)
	require.ErrorIs(t, TxFault(sqliteError(517)), core.ErrRetryTx)
	require.ErrorIs(t, TxFault(sqliteError(5)), core.ErrUnavailable)
}
