package robust_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	pgxstore "github.com/stintmq/stint/drivers/pgx"
	"github.com/stintmq/stint/internal/faults"
	"github.com/stintmq/stint/journal"
)

// tally is the state of an entity.
type tally struct{ Events int }

var (
	tallies  = journal.NewEntity[tally]("tally")
	happened = journal.Type(tallies, "happened", func(s *tally, _ journal.Event[int]) error { s.Events++; return nil })
)

// openLog opens a journal on pgx.
func openLog(ctx context.Context, at target, schema string) (*journal.Journal[pgx.Tx], func() error, error) {
	pool, err := pgxpool.New(ctx, at.dsn())
	if err != nil {
		return nil, nil, err
	}
	s, err := pgxstore.New(pool, pgxstore.Options{Schema: schema})
	if err != nil {
		pool.Close()
		return nil, nil, err
	}
	shut := func() error {
		defer pool.Close()
		return s.Close()
	}
	j, err := journal.New(s.Journal(), journal.Options{})
	return j, shut, err
}

// reactions are what a worker process does: an effect and a tap that leave marks past the store, a projection that
// writes a row per event in its own transaction.
func reactions(j *journal.Journal[pgx.Tx], n *notes, upTo time.Duration) error {
	mark := func(what string) func(seq int64) error {
		return func(seq int64) error {
			return n.mark(`insert into `+n.table+`_seen (what, seq, pid) values ($1, $2, $3)`, what, seq, os.Getpid())
		}
	}
	p := journal.NewProjection[pgx.Tx]("seen")
	journal.Apply(p, happened, func(ctx context.Context, tx pgx.Tx, e journal.Event[int]) error {
		_, err := tx.Exec(ctx, `insert into `+n.table+`_applied (seq, entity, version) values ($1, $2, $3)`, e.Seq, e.Key.ID, e.Version)
		return err
	})
	effect, tap := mark("effect"), mark("tap")
	return errors.Join(j.Project(p),
		journal.On(j, "mark", happened, func(_ context.Context, e journal.Event[int], _ journal.Call[pgx.Tx]) error {
			err := effect(e.Seq)
			pause(rand.N(upTo)) // something to be killed in
			return err
		}),
		journal.Tap(j, "mark", happened, func(_ context.Context, e journal.Event[int]) error { return tap(e.Seq) }))
}

// runJournal is a worker process of a journal.
func (c *child) runJournal(ctx context.Context, n *notes) error {
	j, shut, err := openLog(ctx, c.At, c.Schema)
	if err != nil {
		return err
	}
	if err := reactions(j, n, c.Work); err != nil {
		return err
	}
	w, err := j.Worker(journal.WorkerOptions{Core: c.options(slog.New(slog.NewTextHandler(os.Stderr, nil))), Poll: c.Poll})
	if err != nil {
		return err
	}
	fmt.Println("working")
	return errors.Join(w.Run(ctx), shut())
}

// TestJournalWorkersKilled: worker processes are killed at random, with kill -9, while others record. Each event is
// applied once by the projection, in order, and each effect has run (J5, J7).
func TestJournalWorkersKilled(t *testing.T) {
	t.Parallel() // it waits for leases to run out
	e := sharedEnv(t, pgxDriver())
	table := e.runsTable()
	_, err := e.pool.Exec(t.Context(), fmt.Sprintf(`create table %[1]s_seen (what text, seq bigint, pid int);
		create table %[1]s_applied (seq bigint, entity text, version bigint, n bigint generated always as identity)`, table), pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	j, shut, err := openLog(ctx, e.at, e.schema)
	require.NoError(t, err)
	defer func() { require.NoError(t, shut()) }()
	require.NoError(t, reactions(j, &notes{e.pool, table}, time.Millisecond))

	kills, events := size(4, 20), size(600, 10_000)
	next := 0
	ids := map[*process]string{}
	another := func() *process {
		next++
		p := e.start(e.worker(fmt.Sprintf("worker-%d", next), func(c *child) {
			c.Journal, c.Poll, c.Work = true, 50*time.Millisecond, 60*time.Millisecond
		}))
		ids[p] = fmt.Sprintf("worker-%d", next)
		return p
	}
	crew := []*process{another(), another(), another()}
	var writers sync.WaitGroup
	errs := make([]error, 4)
	for w := range errs {
		writers.Go(func() {
			for range events / len(errs) {
				_, err := journal.Do(ctx, j, tallies, strconv.Itoa(rand.N(10)), func(context.Context, pgx.Tx, journal.State[tally]) ([]journal.Draft, error) {
					return []journal.Draft{happened.New(w)}, nil
				}, journal.DoOptions{Attempts: 1000})
				if err != nil {
					errs[w] = err
					return
				}
			}
		})
	}
	count := func(of string) int { return e.number("select count(*) from " + of) }
	log := `"` + e.schema + `".events`
	held := func(worker string) int { return count(fmt.Sprintf(`%q.leases where worker = '%s'`, e.schema, worker)) }
	hits := 0
	for kill := range kills {
		mark := 1 + kill*events/(kills+2)
		e.soon("work goes on", time.Minute, func() bool { return count(table+"_applied") >= mark })
		pause(rand.N(5 * time.Millisecond))
		i := rand.N(len(crew))
		id := ids[crew[i]]
		e.soon("it runs an effect", time.Minute, func() bool { return held(id) > 0 || count(log) >= events })
		crew[i].kill()
		if held(id) > 0 {
			hits++
		}
		crew[i] = another()
	}
	writers.Wait()
	require.NoError(t, errors.Join(errs...))
	_, head, err := j.Cursors(ctx)
	require.NoError(t, err)
	require.NoError(t, j.WaitFor(ctx, "seen", head.Seq))
	effects := "(select distinct seq from " + table + "_seen where what = 'effect') s"
	e.soon("all effects", time.Minute, func() bool { return count(effects) == events })
	for _, p := range crew {
		p.stop()
	}
	require.Equal(t, events, count(log))
	require.Equal(t, events, count(table+"_applied"))
	require.Equal(t, events, count(log+" join "+table+"_applied using (seq)"), "none twice")
	require.Zero(t, count("(select seq < lag(seq) over (order by n) as back from "+table+"_applied) a where back"), "in order")
	require.Zero(t, count("(select version <> row_number() over (partition by entity order by n) as odd from "+table+"_applied) a where odd"))
	require.Zero(t, count("(select from "+table+"_seen where what = 'tap' group by seq, pid having count(*) > 1) s"), "a tap hears an event once")
	require.NotZero(t, count(table+"_seen where what = 'tap'"))
	counts, err := j.Stranded(ctx)
	require.NoError(t, err)
	require.Empty(t, counts)
	runs := count(table + "_seen where what = 'effect'")
	t.Logf("%d kills, %d of them in effects; %d events, %d runs of effects", kills, hits, events, runs)
	require.Positive(t, hits, "the test proves nothing")
}

// TestJournalConnectionsCut: a commit whose reply is lost may have happened, and says so; a reader that loses its
// connection, wherever it is, applies each event once (J1, J7).
func TestJournalConnectionsCut(t *testing.T) {
	t.Parallel()
	e := sharedEnv(t, pgxDriver())
	_, err := e.pool.Exec(t.Context(), "create table "+e.notes+".applied (seq bigint)")
	require.NoError(t, err)
	at, proxy := e.at.via(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	j, shut, err := openLog(ctx, at, e.schema)
	require.NoError(t, err)
	defer func() { require.NoError(t, shut()) }()
	p := journal.NewProjection[pgx.Tx]("seen")
	journal.Apply(p, happened, func(ctx context.Context, tx pgx.Tx, ev journal.Event[int]) error {
		_, err := tx.Exec(ctx, "insert into "+e.notes+".applied values ($1)", ev.Seq)
		return err
	})
	require.NoError(t, j.Project(p))
	record := func() error {
		return j.InTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
			_, err := j.Record(ctx, tx, tallies.Key("a"), journal.AnyVersion, happened.New(1))
			return err
		})
	}
	require.NoError(t, record())
	log := `"` + e.schema + `".events`
	count := func() int { return e.number("select count(*) from " + log) }
	for _, c := range []struct {
		pattern string
		moment  faults.Moment
		unknown bool
	}{
		{`insert into "` + e.schema + `".events`, faults.Before, false}, {`insert into "` + e.schema + `".events`, faults.After, false},
		{e.d.commit, faults.Before, true}, {e.d.commit, faults.After, true},
	} {
		have := count()
		struck := proxy.Arm(faults.Rule{Pattern: c.pattern, Moment: c.moment})
		err := record()
		<-struck
		if c.unknown {
			require.ErrorIs(t, err, core.ErrUnknown)
		} else {
			require.ErrorIs(t, err, core.ErrUnavailable)
			require.NotErrorIs(t, err, core.ErrUnknown)
		}
		want := have
		if c.unknown && c.moment == faults.After {
			want++
		}
		require.Equal(t, want, count(), "%s %s", c.pattern, c.moment)
	}
	for _, pattern := range []string{`"` + e.schema + `".cursors where name`, "pg_is_in_recovery()", `.applied values`, `update "` + e.schema + `".cursors`, e.d.commit} {
		for _, m := range []faults.Moment{faults.Before, faults.After} {
			require.NoError(t, record())
			struck := proxy.Arm(faults.Rule{Pattern: pattern, Moment: m})
			_, err := j.CatchUp(ctx)
			<-struck
			require.Error(t, err, "%s %s", pattern, m)
			for n := 1; n > 0; {
				n, err = j.CatchUp(ctx)
				require.NoError(t, err, "%s %s: no event is to blame", pattern, m)
			}
			cursors, _, err := j.Cursors(ctx)
			require.NoError(t, err)
			require.Zero(t, cursors[0].Failures)
		}
	}
	require.Equal(t, count(), e.number("select count(*) from "+e.notes+".applied"))
	require.Equal(t, count(), e.number("select count(distinct seq) from "+e.notes+".applied"))
}
