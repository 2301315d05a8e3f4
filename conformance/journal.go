package conformance

import (
	"slices"
	"testing"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/journal"
)

// JournalHarness tells RunJournal how to get at a driver's journal. New and Begin are required.
type JournalHarness[Tx any] struct {
	// New returns the journal of a fresh, empty database, and the queue that its jobs go to, as Jobs does. It is called
	// once per case; the driver closes what it opened by t.Cleanup. The clock is the store's time.
	New func(t testing.TB, clock core.Clock) (journal.Store[Tx], core.Store)

	// Open returns a second handle on the data of a store that New returned: what another process would see. nil: cases
	// that need one are skipped.
	Open func(t testing.TB, s core.Store, clock core.Clock) (journal.Store[Tx], core.Store)

	// Begin starts a transaction as a user of the driver would, at READ COMMITTED. Either commit or rollback is called,
	// once. It is called from several goroutines.
	Begin func(t testing.TB, s core.Store) (tx Tx, commit, rollback func() error)

	// Serial: one transaction at a time writes. A second one waits for its end, in Begin or at its first write.
	Serial bool

	// Apart: Announce on one handle does not wake those who wait on another.
	Apart bool

	// CaseTimeout is how long a case may take, as in Harness.
	CaseTimeout time.Duration

	// Events is how many events the case of J9 under load writes; 0: 2,000.
	Events int
}

// What a journal's store may have, for testCase.needs.
const (
	capOverlap Capability = "overlap" // transactions that write stand open side by side: not Serial
	capAcross  Capability = "across"  // announcements reach other handles: not Apart
)

// RunJournal holds a driver's journal, and the engine on it, against docs/journal.md. Subtests are named topic/case. No
// case sleeps: time is the injected clock's, and whatever happens elsewhere is waited for.
func RunJournal[Tx any](t *testing.T, h JournalHarness[Tx]) {
	t.Helper()
	if h.New == nil || h.Begin == nil {
		t.Fatal("conformance: JournalHarness needs New and Begin")
	}
	s := newJournalSuite(&h)
	for _, top := range journalTopics(&h) {
		t.Run(top.name, func(t *testing.T) {
			for _, c := range top.cases {
				t.Run(c.name, func(t *testing.T) { s.runCase(t, c, NewClock()) })
			}
		})
	}
}

// newJournalSuite is a suite whose cases make their own stores: how they look at them is not the queue's business.
func newJournalSuite[Tx any](h *JournalHarness[Tx]) *suite {
	s := newSuite(Harness{
		New:         func(testing.TB, core.Clock) core.Store { return nil },
		CaseTimeout: h.CaseTimeout,
	})
	s.has[CapOpen] = h.Open != nil
	s.has[CapInspector] = true // each case finds out
	s.has[capOverlap] = !h.Serial
	s.has[capAcross] = h.Open != nil && !h.Apart
	return s
}

// journalCase is a case on a journal.
type journalCase[Tx any] struct {
	rule, name, demands string
	needs               []Capability
	limit               time.Duration
	run                 func(k *jkit[Tx])
}

type journalTopic[Tx any] struct {
	name  string
	cases []journalCase[Tx]
}

// journalTopics lists the cases from the store up, the costly ones last.
func journalTopics[Tx any](h *JournalHarness[Tx]) []topic {
	var out []topic
	for _, top := range []journalTopic[Tx]{
		{"append", appendCases[Tx]()},
		{"overlap", overlapCases[Tx]()},
		{"settled", settledCases[Tx]()},
		{"log", logCases[Tx]()},
		{"cursor", cursorCases[Tx]()},
		{"notes", noteCases[Tx]()},
		{"announce", announceCases[Tx]()},
		{"record", recordCases[Tx]()},
		{"refused", refusedCases[Tx]()},
		{"load", loadCases[Tx]()},
		{"do", doCases[Tx]()},
		{"decode", decodeCases[Tx]()},
		{"effect", effectCases[Tx]()},
		{"ordered", orderedCases[Tx]()},
		{"backfill", backfillCases[Tx]()},
		{"projection", projectionCases[Tx]()},
		{"inline", inlineCases[Tx]()},
		{"poison", poisonCases[Tx]()},
		{"park", parkCases[Tx]()},
		{"reset", resetCases[Tx]()},
		{"tap", tapCases[Tx]()},
		{"loop", loopCases[Tx]()},
		{"load-test", journalLoadCases[Tx]()},
	} {
		t := topic{name: top.name}
		for _, c := range top.cases {
			t.cases = append(t.cases, testCase{
				rule: c.rule, name: c.name, demands: c.demands, needs: c.needs, limit: c.limit,
				run: func(k *kit) { c.run(newJkit(k, h)) },
			})
		}
		out = append(out, t)
	}
	return out
}

// journalDemands reports whether a capability is one that a JournalHarness says it lacks.
func journalDemands(c Capability) bool {
	return slices.Contains([]Capability{CapOpen, capOverlap, capAcross}, c)
}
