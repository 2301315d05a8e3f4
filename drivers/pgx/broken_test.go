package pgxstore_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stintmq/stint/conformance"
	"github.com/stintmq/stint/core"
	pgxstore "github.com/stintmq/stint/drivers/pgx"
	"github.com/stintmq/stint/internal/failing"
	"github.com/stintmq/stint/internal/pgstore/pgstoretest"
	"github.com/stintmq/stint/internal/pgtest"
	"github.com/stintmq/stint/journal"
)

// mutant is a store with one fault in its SQL, and the cases that have to catch it: those of the conformance suite, and
// those of pgstoretest, which have no slash in their names.
type mutant struct {
	fault string
	sql   *pgstoretest.Fault
	cases []string
}

// TestMutants holds the conformance suite, and the tests of all Postgres drivers, against broken statements.
func TestMutants(t *testing.T) {
	kit, backend := brokenKit(t)
	for _, m := range slices.Concat(mutants(), gaugeMutants(), dedupeMutants(), scheduleMutants()) {
		t.Run(strings.ReplaceAll(m.fault, " ", "-"), func(t *testing.T) {
			backend.Rewrite = m.sql.Rewrite
			defer func() { backend.Rewrite = nil }()
			for _, name := range m.cases {
				r := runCase(t, kit, name)
				said := strings.TrimSpace(strings.Join(r.Said, "\n"))
				switch {
				case !r.Failed:
					t.Errorf("%s does not see it", name)
				case strings.Contains(said, "SQLSTATE 42"):
					t.Errorf("the fault is no SQL: %s", said)
				default:
					t.Logf("%s: %.300s", name, said)
				}
			}
			m.sql.Check(t)
		})
	}
	// The same cases with nothing broken: it is the faults that they see.
	seen := make(map[string]bool)
	for _, m := range slices.Concat(mutants(), gaugeMutants(), dedupeMutants(), scheduleMutants()) {
		for _, name := range m.cases {
			if seen[name] {
				continue
			}
			seen[name] = true
			if r := runCase(t, kit, name); r.Failed {
				t.Errorf("%s fails on a store that is not broken: %q", name, r.Said)
			}
		}
	}
}

func runCase(t *testing.T, kit *pgstoretest.Kit, name string) failing.Result {
	return failing.Run(t, func(tb testing.TB) {
		if strings.Contains(name, "/") {
			conformance.RunCase(tb, kit.Harness(), name)
		} else {
			kit.Case(tb, name)
		}
	})
}

// brokenKit has stores whose statements go through a backend that changes them.
func brokenKit(t *testing.T) (*pgstoretest.Kit, *pgstoretest.Rewriting) {
	pool, err := pgxpool.New(context.Background(), pgtest.DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	broken := &pgstoretest.Rewriting{Patience: 2 * time.Second}
	kit := pgstoretest.ForTest(t, func(t testing.TB) (*pgstoretest.DB, error) {
		db, err := connect(t)
		if err != nil {
			return nil, err
		}
		broken.Backend = db.Backend
		db.On = func(schema string, clock core.Clock) (pgstoretest.Store, error) {
			return pgxstore.NewOn(broken, pool, pgxstore.Options{Schema: schema, Clock: clock})
		}
		db.Journal = func(s pgstoretest.Store) journal.Store[*pgstoretest.Tx] {
			return pgstoretest.JournalOf(pgxstore.JournalOn(s.(*pgxstore.Store), broken.Over), inTx)
		}
		begin := db.Begin
		db.Begin = func(ctx context.Context, s pgstoretest.Store, repeatable bool) (*pgstoretest.Tx, error) {
			tx, err := begin(ctx, s, repeatable)
			if err == nil {
				tx.View = pgxstore.View(s.(*pgxstore.Store), tx.Own.(pgx.Tx), broken.Over(tx.X))
			}
			return tx, err
		}
		return db, nil
	})
	return kit, broken
}
