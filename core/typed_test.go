package core_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
)

// TestTypedRecords: what a job stored comes back typed, and what another did does not.
func TestTypedRecords(t *testing.T) {
	type order struct{ Number int }
	keyed := core.JobOptions[order]{MaxAttempts: 1, Key: func(o order) string {
		if o.Number == 0 {
			return ""
		}
		return fmt.Sprint(o.Number)
	}}
	s := memstore.New(memstore.Options{})
	bill, other := core.NewJob[order, string]("bill", keyed), core.NewTask[order]("other")
	w := newWorker(t, s, core.WorkerOptions{})
	bill.Handle(w, func(_ context.Context, o order) (string, error) {
		if o.Number < 0 {
			return "", errBoom
		}
		return fmt.Sprint("bill of ", o.Number), nil
	})
	id := enqueue(t, bill, s, order{7})
	require.Equal(t, id, bill.IDOf(order{7}))
	require.Empty(t, bill.IDOf(order{}), "an empty key is refused")
	require.Empty(t, other.IDOf(order{7}))

	rec := get(t, s, id)
	payload, err := bill.Payload(rec)
	require.NoError(t, err)
	require.Equal(t, order{7}, payload)
	_, err = bill.Result(rec)
	unfinished, ok := errors.AsType[*core.JobError](err)
	require.True(t, ok)
	require.Equal(t, core.StateWaiting, unfinished.State)

	bad := enqueue(t, bill, s, order{-1})
	_, err = w.Drain(t.Context(), core.DrainOptions{})
	require.NoError(t, err)
	result, err := bill.Result(get(t, s, id))
	require.NoError(t, err)
	require.Equal(t, "bill of 7", result)
	_, err = bill.Result(get(t, s, bad))
	failed, ok := errors.AsType[*core.JobError](err)
	require.True(t, ok)
	require.Equal(t, "boom", failed.Failure.Message)

	var conflict *core.ConflictError
	_, err = other.Payload(rec)
	require.ErrorAs(t, err, &conflict)
	_, err = other.Result(rec)
	require.ErrorAs(t, err, &conflict)
	rec.Payload = []byte("{")
	_, err = bill.Payload(rec)
	require.Error(t, err)
}
