package bunstore_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/uptrace/bun"

	"github.com/stintmq/stint/conformance"
	"github.com/stintmq/stint/core"
	bunstore "github.com/stintmq/stint/drivers/bun"
	"github.com/stintmq/stint/journal"
)

// TestJournalConformance holds the journal on SQLite against the contract.
func TestJournalConformance(t *testing.T) {
	at := func(t testing.TB, path string, clock core.Clock) (journal.Store[bun.Tx], core.Store) {
		s := openAt(t, path, bunstore.Options{Clock: clock, Synchronous: "NORMAL"})
		return s.Journal(), s
	}
	conformance.RunJournal(t, conformance.JournalHarness[bun.Tx]{
		New: func(t testing.TB, clock core.Clock) (journal.Store[bun.Tx], core.Store) {
			return at(t, filepath.Join(t.TempDir(), "jobs.db"), clock)
		},
		Open: func(t testing.TB, s core.Store, clock core.Clock) (journal.Store[bun.Tx], core.Store) {
			return at(t, pathOf(t, s.(*bunstore.Store)), clock)
		},
		Begin: func(t testing.TB, s core.Store) (bun.Tx, func() error, func() error) {
			tx, err := s.(*bunstore.Store).DB().BeginTx(context.Background(), nil)
			require.NoError(t, err)
			return tx, tx.Commit, tx.Rollback
		},
		Serial: true,
		Apart:  true,
	})
}
