package pgsql

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
)

// coded is an error of Postgres's.
type coded string

func (c coded) Error() string    { return "SQLSTATE " + string(c) }
func (c coded) SQLState() string { return string(c) }

// TestFaults: what the database's codes mean. Data faults split a batch (Q22); everything else is an outage, and whether
// it may have been done decides what the caller may repeat.
func TestFaults(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		codes []string
		sent  error // of a write; nil: it is the data's fault
		spent bool  // the connection is of no use any more
	}{
		{[]string{"22021", "22P02", "23505", "54000"}, nil, false},
		{[]string{"25006"}, core.ErrUnavailable, true},
		{[]string{"57P01", "57P02", "57P03", "08006", "08P01"}, core.ErrUnknown, true},
		{[]string{"40003"}, core.ErrUnknown, false},
		{[]string{"40001", "40P01", "55P03", "57014", "53100", "53300", "42501", "42P01", "XX000"}, core.ErrUnavailable, false},
		{[]string{""}, core.ErrUnknown, false},
	} {
		for _, code := range c.codes {
			err := fmt.Errorf("query: %w", coded(code))
			if code == "" {
				err = errors.New("connection reset by peer")
			}
			require.Equal(t, c.spent, Spent(err), code)
			got, unsent := Fault(ctx, err, true), Fault(ctx, err, false)
			require.ErrorIs(t, got, err, code)
			if c.sent == nil {
				var invalid *core.InvalidError
				require.ErrorAs(t, got, &invalid, code)
				require.ErrorAs(t, unsent, &invalid, code)
				require.NotErrorIs(t, got, core.ErrUnavailable, code)
				continue
			}
			require.ErrorIs(t, got, c.sent, code)
			require.ErrorIs(t, unsent, core.ErrUnavailable, code)
			require.NotErrorIs(t, unsent, core.ErrUnknown, code)
		}
	}
	require.ErrorIs(t, TxFault(ctx, coded("40001")), core.ErrRetryTx)
	require.ErrorIs(t, TxFault(ctx, coded("40P01")), core.ErrRetryTx)
	require.NoError(t, Fault(ctx, nil, true))

	ended, cancel := context.WithCancel(ctx)
	cancel()
	err := Fault(ended, errors.New("timeout"), true)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, core.ErrUnknown)
	for _, answer := range []error{core.ErrNotFound, core.ErrLeaseLost, core.ErrRetryTx, &core.StateError{}, &core.ConflictError{}, &SchemaError{}} {
		require.Equal(t, answer, Fault(ctx, answer, true))
	}
}
