package pgstoretest

import (
	"slices"
	"testing"

	"github.com/stintmq/stint/conformance"
	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/journal"
)

// Conformance runs the conformance suite.
func (k *Kit) Conformance(t *testing.T) { conformance.Run(t, k.Harness()) }

// Harness lets the conformance suite have stores of the kit.
func (k *Kit) Harness() conformance.Harness {
	return conformance.Harness{
		New: func(t testing.TB, clock core.Clock) core.Store { return k.Open(t, clock) },
		Open: func(t testing.TB, s core.Store, clock core.Clock) core.Store {
			return k.OpenAt(t, k.SchemaOf(s), clock)
		},
		Begin: func(t testing.TB, s core.Store) (core.TxView, func() error, func() error) {
			tx := k.Begin(t, s.(Store))
			return tx.View, tx.Commit, tx.Rollback
		},
		Check: func(t testing.TB, s core.Store) { k.CheckInvariants(t, k.SchemaOf(s)) },
	}
}

// JournalConformance runs the conformance suite of journals.
func (k *Kit) JournalConformance(t *testing.T) {
	at := func(t testing.TB, s Store) (journal.Store[*Tx], core.Store) { return k.DB(t).Journal(s), s }
	conformance.RunJournal(t, conformance.JournalHarness[*Tx]{
		New: func(t testing.TB, clock core.Clock) (journal.Store[*Tx], core.Store) { return at(t, k.Open(t, clock)) },
		Open: func(t testing.TB, s core.Store, clock core.Clock) (journal.Store[*Tx], core.Store) {
			return at(t, k.OpenAt(t, k.SchemaOf(s), clock))
		},
		Begin: func(t testing.TB, s core.Store) (*Tx, func() error, func() error) {
			tx := k.Begin(t, s.(Store))
			return tx, tx.Commit, tx.Rollback
		},
	})
}

// encoded are the cases in which values of every kind travel both ways.
var encoded = []string{
	"enqueue/every-field", "enqueue/zero-fields", "enqueue/times", "enqueue/payload-bytes", "enqueue/metadata-texts",
	"ids/conflict", "batch/repeats", "batch/large-payloads", "claim/names", "claim/held-by-token", "ack/results", "ack/failures",
	"ledger/entries", "list/filters", "list/pages", "list/by-finish-time", "schedule/every-field", "schedule/bounds",
	"schedule/tick-fields", "stall/limit", "retain/count-and-age", "retain/newest-rules", "retain/limit", "tx/enqueue-commit",
	"tx/complete-commit",
	"dedupe/record", "dedupe/batch", "replace/every-field", "deduperace/tx-commit",
}

// Encoding runs the cases that a way of encoding values could break, for libraries that know several ways.
func (k *Kit) Encoding(t *testing.T) {
	for _, name := range encoded {
		t.Run(name, func(t *testing.T) { conformance.RunCase(t, k.Harness(), name) })
	}
	t.Run("JournalBytes", func(t *testing.T) { k.Case(t, "JournalBytes") })
}

// Test runs what else every Postgres driver has to do.
func (k *Kit) Test(t *testing.T) {
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) { c.test(t, k) })
	}
}

// Case runs one case of Test, by its name.
func (k *Kit) Case(t testing.TB, name string) {
	t.Helper()
	all := cases()
	i := slices.IndexFunc(all, func(c testCase) bool { return c.name == name })
	if i < 0 {
		t.Fatalf("pgstoretest: there is no case %q", name)
	}
	all[i].test(t, k)
}

type testCase struct {
	name string
	test func(testing.TB, *Kit)
}

func cases() []testCase {
	return []testCase{
		{"ClaimsLockNoMoreThanTheyTake", claimsLockNoMoreThanTheyTake},
		{"ContendedID", contendedID},
		{"LoserOfARollback", loserOfARollback},
		{"OverlappingTransactions", overlappingTransactions},
		{"LockedKeysHoldNobodyUp", lockedKeysHoldNobodyUp},
		{"ContendedKey", contendedKey},
		{"LosersOfAKey", losersOfAKey},
		{"KeyOfARefusedID", keyOfARefusedID},
		{"RetriesLose", retriesLose},
		{"RemovesFreeTheKey", removesFreeTheKey},
		{"ReplacedAndNewInOneOrder", replacedAndNewInOneOrder},
		{"KeysInOneOrder", keysInOneOrder},
		{"LongKeyedBatches", longKeyedBatches},
		{"ReplaceAndClaims", replaceAndClaims},
		{"OddSchemaName", oddSchemaName},
		{"MigrateAtOnce", migrateAtOnce},
		{"NewerSchema", newerSchema},
		{"MigrateWaitsInTurn", migrateWaitsInTurn},
		{"PlansOutliveEmptyTables", plansOutliveEmptyTables},
		{"EverythingAtOnce", everythingAtOnce},
		{"HeldRowHoldsNobodyUp", heldRowHoldsNobodyUp},
		{"HeldScheduleHoldsNobodyUp", heldScheduleHoldsNobodyUp},
		{"TickMakesLostLane", tickMakesLostLane},
		{"TransactionsAboveReadCommitted", transactionsAboveReadCommitted},
		{"LateCommit", lateCommit},
		{"NilTx", nilTx},
		{"DeadTransactions", deadTransactions},
		{"LanesLost", lanesLost},
		{"StraysComeTogether", straysComeTogether},
		{"CappedClaimsHideNothing", cappedClaimsHideNothing},
		{"SequenceGoesBack", sequenceGoesBack},
		{"SweepsPassHeldRows", sweepsPassHeldRows},
		{"LongBatchesInOneOrder", longBatchesInOneOrder},
		{"EndsBehindHeartbeats", endsBehindHeartbeats},
		{"OwnSettings", ownSettings},
		{"ChannelHeals", channelHeals},
		{"CloseTells", closeTells},
		{"Closed", closed},
		{"StrayJobIsFound", strayJobIsFound},
		{"AClaimThatWaits", aClaimThatWaits},
		{"TimesComeAfterWaits", timesComeAfterWaits},
		{"VerbsFollowTheJob", verbsFollowTheJob},
		{"IDsInOneOrder", idsInOneOrder},
		{"PrunesPassHeldRows", prunesPassHeldRows},
		{"PrunesLeaveRevivedJobs", prunesLeaveRevivedJobs},
		{"OnePrunesAtATime", onePrunesAtATime},
		{"WorkPassesAPrune", workPassesAPrune},
		{"DemotedConnectionsGo", demotedConnectionsGo},
		{"RowsOfALaterRelease", rowsOfALaterRelease},
		{"OddTexts", oddTexts},
		{"ManyInOneCall", manyInOneCall},
		{"Worker", worker},
		{"JournalBytes", journalBytes},
		{"JournalLargePages", journalLargePages},
		{"JournalCommits", journalCommits},
		{"JournalRetries", journalRetries},
		{"JournalCursors", journalCursors},
		{"JournalWakesEffects", journalWakesEffects},
		{"JournalOtherTx", journalOtherTx},
		{"JournalSavepoints", journalSavepoints},
		{"JournalHoles", journalHoles},
		{"JournalNothingElseWaits", journalNothingElseWaits},
		{"JournalOwnEvents", journalOwnEvents},
		{"JournalLockedFirst", journalLockedFirst},
		{"JournalLevels", journalLevels},
		{"JournalSequence", journalSequence},
		{"JournalWithoutTables", journalWithoutTables},
		{"JournalUnderLoad", journalUnderLoad},
	}
}

// Benchmark runs the benchmarks.
func (k *Kit) Benchmark(b *testing.B) {
	b.Run("ClaimAck", func(b *testing.B) { benchClaimAck(b, k) })
	b.Run("Enqueue", func(b *testing.B) { benchEnqueue(b, k) })
	b.Run("Keyed", func(b *testing.B) { benchKeyed(b, k) })
	b.Run("Pickup", func(b *testing.B) { benchPickup(b, k) })
	b.Run("Worker", func(b *testing.B) { benchWorker(b, k) })
}
