package failing_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/internal/failing"
)

func TestRun(t *testing.T) {
	var order []string
	r := failing.Run(t, func(tb testing.TB) {
		tb.Cleanup(func() { order = append(order, "first in, last out") })
		tb.Cleanup(func() { tb.FailNow() })
		tb.Log("so far so good")
		require.NoError(tb, nil)
		require.Equal(tb, 1, 2)
		order = append(order, "never")
	})
	require.True(t, r.Failed)
	require.False(t, r.Skipped)
	require.Len(t, r.Said, 2)
	require.Equal(t, []string{"first in, last out"}, order)

	r = failing.Run(t, func(tb testing.TB) { tb.Skip("not today") })
	require.False(t, r.Failed)
	require.True(t, r.Skipped)
	require.Equal(t, []string{"not today"}, r.Said)
}
