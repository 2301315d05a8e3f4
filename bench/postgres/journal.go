package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stintmq/stint/core"
	pgxstore "github.com/stintmq/stint/drivers/pgx"
	"github.com/stintmq/stint/journal"
)

// OnlyJournal, as Config.Only, measures the journal in place of queues.
const OnlyJournal = "journal"

type deposit struct {
	Text string `json:"text"`
}

type balance struct{ Events int }

// journaled is the subject of one run: a journal with one effect and two projections, and the bare table.
type journaled struct {
	pool      *pgxpool.Pool
	store     *pgxstore.Store
	j         *journal.Journal[pgx.Tx]
	plain     *journal.Journal[pgx.Tx] // without effects
	accounts  *journal.Entity[balance]
	deposited journal.Ref[deposit]
	drafts    []journal.Draft
	payloads  [][]byte
	told      atomic.Int64
	mill      *watermilled
	sourced   *sourced
}

// Journal measures it beside INSERTs into, and reads of, a table of the same columns, in alternating rounds.
func Journal(ctx context.Context, cfg Config) error {
	return withServer(cfg, func(dsn string) error {
		head, err := heading(ctx, dsn, cfg, cfg.Rounds)
		if err != nil {
			return err
		}
		before := load()
		rates := make(map[string][]float64)
		var names []string
		for round := range cfg.Rounds {
			err := withDatabase(ctx, dsn, "journal"+strconv.Itoa(round), func(dsn string) error {
				return journalRound(ctx, dsn, cfg, round, func(name string, rate float64) {
					if !slices.Contains(names, name) {
						names = append(names, name)
					}
					rates[name] = append(rates[name], rate)
					fmt.Fprintf(os.Stderr, "round %d of %d: %-34s %8.0f/s\n", round+1, cfg.Rounds, name, rate)
				})
			})
			if err != nil {
				return err
			}
		}
		fmt.Printf("%s; load %s before and %s after\n\n%s", head, before, load(), journalTable(names, rates))
		return nil
	})
}

// bareNames are the ways that journalTable compares the others of the same thing with.
var bareNames = []string{"bare", "bare with an outbox", "bare, decoded"}

// journalTable has medians, and what part of the bare rates each is: the median of the rounds' quotients.
func journalTable(names []string, rates map[string][]float64) string {
	middle := func(list []float64) float64 {
		list = slices.Sorted(slices.Values(list))
		return list[len(list)/2]
	}
	var b strings.Builder
	b.WriteString("| | events/s | " + "of " + strings.Join(bareNames, " | of ") + " |\n|---|--:|--:|--:|--:|\n")
	for _, name := range names {
		fmt.Fprintf(&b, "| %s | %.0f |", name, middle(rates[name]))
		what, way, _ := strings.Cut(name, ": ")
		for _, bare := range bareNames {
			raw := rates[what+": "+bare]
			if raw == nil || slices.Contains(bareNames, way) {
				b.WriteString(" |")
				continue
			}
			quotients := make([]float64, len(raw))
			for i := range raw {
				quotients[i] = rates[name][i] / raw[i]
			}
			fmt.Fprintf(&b, " %.0f %% |", 100*middle(quotients))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func openJournaled(ctx context.Context, dsn string) (*journaled, error) {
	store, pool, err := openStore(ctx, dsn, "")
	if err != nil {
		return nil, err
	}
	b := &journaled{pool: pool, store: store, accounts: journal.NewEntity[balance]("account")}
	b.deposited = journal.Type(b.accounts, "deposited", func(s *balance, _ journal.Event[deposit]) error { s.Events++; return nil })
	for range 100 {
		b.drafts = append(b.drafts, b.deposited.New(deposit{text}))
		b.payloads = append(b.payloads, []byte(`{"text":"`+text+`"}`))
	}
	for _, j := range []**journal.Journal[pgx.Tx]{&b.j, &b.plain} {
		if *j, err = journal.New(store.Journal(), journal.Options{}); err != nil {
			return nil, err
		}
	}
	err = journal.On(b.j, "tell", b.deposited, func(context.Context, journal.Event[deposit], journal.Call[pgx.Tx]) error {
		b.told.Add(1)
		return nil
	})
	if err != nil {
		return nil, err
	}
	_, err = pool.Exec(ctx, rawTables+"; create table balances (account text primary key, events bigint not null)", pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return nil, err
	}
	if b.mill, err = openWatermill(ctx, pool, b.payloads[0]); err != nil {
		return nil, err
	}
	b.sourced, err = openSourced(dsn, b.payloads[0])
	return b, err
}

func (b *journaled) close() error {
	err := b.store.Close()
	b.pool.Close()
	return errors.Join(err, b.sourced.db.Close())
}

func journalRound(ctx context.Context, dsn string, cfg Config, round int, note func(string, float64)) (err error) {
	b, err := openJournaled(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	for _, c := range []struct{ writers, batch, part int }{{1, 1, 10}, {8, 1, 4}, {1, 100, 1}, {8, 100, 1}} {
		ways := []struct {
			name   string
			append func(ctx context.Context, writer, batch int) error
		}{{"bare", b.appendRaw}, {"bare with an outbox", b.appendOutbox}, {"journal", b.appendTo(b.plain)}, {"journal with an effect", b.appendTo(b.j)}, {"watermill", b.mill.append},
			{"eventsourcing", b.sourced.append}}
		for i := range ways {
			way := ways[(i+round)%len(ways)]
			what := fmt.Sprintf("append %d x %d: %s", c.writers, c.batch, way.name)
			rate, err := appendRate(ctx, c.writers, c.batch, cfg.Jobs/c.part, way.append)
			if err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			note(what, rate)
		}
	}
	if _, err := b.pool.Exec(ctx, "vacuum analyze"); err != nil {
		return err
	}
	return b.reactions(ctx, cfg, round, note)
}

func (b *journaled) appendTo(j *journal.Journal[pgx.Tx]) func(ctx context.Context, writer, batch int) error {
	return func(ctx context.Context, writer, batch int) error {
		return j.InTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
			_, err := j.Record(ctx, tx, b.accounts.Key(strconv.Itoa(writer)), journal.AnyVersion, b.drafts[:batch]...)
			return err
		})
	}
}

func appendRate(ctx context.Context, writers, batch, events int, one func(ctx context.Context, writer, batch int) error) (float64, error) {
	var writer, sent atomic.Int64
	if err := parallel(writers, func() error { return one(ctx, int(writer.Add(1)), batch) }); err != nil { // connections, plans
		return 0, err
	}
	writer.Store(0)
	began := time.Now()
	err := parallel(writers, func() error {
		w := int(writer.Add(1))
		for sent.Add(int64(batch)) <= int64(events) {
			if err := one(ctx, w, batch); err != nil {
				return err
			}
		}
		return nil
	})
	return float64(events) / time.Since(began).Seconds(), err
}

// reactions reads all that was appended.
func (b *journaled) reactions(ctx context.Context, cfg Config, round int, note func(string, float64)) error {
	for _, page := range []int{100, 500, 1000} { // 500 is the default
		p := journal.NewProjection[pgx.Tx]("scan"+strconv.Itoa(page), journal.ProjectionOptions{Batch: page})
		journal.Apply(p, b.deposited, func(context.Context, pgx.Tx, journal.Event[deposit]) error { return nil })
		ways := []func() error{
			func() error {
				rate, err := b.readRaw(ctx, page, false)
				note(fmt.Sprintf("scan, %d a page: bare", page), rate)
				return err
			},
			func() error {
				rate, err := b.readRaw(ctx, page, true)
				note(fmt.Sprintf("scan, %d a page: bare, decoded", page), rate)
				return err
			},
			func() error {
				stop, err := (&subject{contender: contender{name: OnlyJournal}, cfg: cfg}).profile()
				if err != nil {
					return err
				}
				rate, err := b.follow(ctx, p)
				note(fmt.Sprintf("scan, %d a page: projection", page), rate)
				return errors.Join(err, stop())
			},
			func() error {
				rate, err := b.mill.follow(ctx, fmt.Sprintf("group%d", page), page, min(cfg.Jobs, 10_000))
				note(fmt.Sprintf("scan, %d a page: watermill", page), rate)
				return err
			},
		}
		for i := range ways {
			if err := ways[(i+round)%len(ways)](); err != nil {
				return err
			}
		}
	}
	rate, err := b.sourced.scan()
	if err != nil {
		return err
	}
	note("scan, all in one query: eventsourcing", rate)

	rebuilt := journal.NewProjection[pgx.Tx]("balances", journal.ProjectionOptions{Batch: 1000})
	journal.Apply(rebuilt, b.deposited, func(ctx context.Context, tx pgx.Tx, e journal.Event[deposit]) error {
		return upsertBalance(ctx, tx, e.Key)
	})
	rebuilds := []func() error{
		func() error {
			rate, err := b.rebuildRaw(ctx, 1000)
			note("rebuild, an upsert per event: bare, decoded", rate)
			return err
		},
		func() error {
			rate, err := b.follow(ctx, rebuilt)
			note("rebuild, an upsert per event: projection", rate)
			return err
		},
	}
	for i := range rebuilds {
		if err := rebuilds[(i+round)%len(rebuilds)](); err != nil {
			return err
		}
	}

	w, err := b.j.Worker(journal.WorkerOptions{Core: core.WorkerOptions{Concurrency: 100}})
	if err != nil {
		return err
	}
	running, stop := context.WithTimeout(ctx, patience)
	defer stop()
	done := make(chan error, 1)
	n := int64(min(cfg.Jobs/2, 10_000))
	began := time.Now()
	go func() { done <- w.Run(running) }()
	for b.told.Load() < n && running.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	note("effects", float64(b.told.Load())/time.Since(began).Seconds())
	stop()
	return <-done
}

// follow has a projection catch up.
func (b *journaled) follow(ctx context.Context, p *journal.Projection[pgx.Tx]) (float64, error) {
	j, err := journal.New(b.store.Journal(), journal.Options{})
	if err != nil {
		return 0, err
	}
	if err := j.Project(p); err != nil {
		return 0, err
	}
	began, n := time.Now(), 0
	for {
		some, err := j.CatchUp(ctx)
		if err != nil {
			return 0, err
		}
		if some == 0 {
			return float64(n) / time.Since(began).Seconds(), nil
		}
		n += some
	}
}
