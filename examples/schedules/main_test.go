package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	memstore "github.com/stintmq/stint/drivers/memory"
)

// TestRun: a hundred minutes of it, in virtual time.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Minute+time.Second/2)
		defer cancel()
		require.NoError(t, run(ctx, memstore.New(memstore.Options{}), &out))
		require.Contains(t, out.String(), "kept [backup-nightly probe-mail probe-shop], removed [backup-weekly]\n")
		require.Equal(t, 1, strings.Count(out.String(), "\nbackup all for 01:30:00, "))
		require.InDelta(t, 3000, strings.Count(out.String(), "\nprobe shop for"), 1)
		require.InDelta(t, 2000, strings.Count(out.String(), "\nprobe mail for"), 1)
	})
}
