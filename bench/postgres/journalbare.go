package postgres

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/journal"
)

// rawTables are the journal's events, and jobs in an outbox, without anything around them.
const rawTables = `create table raw_events (
	seq bigint not null generated always as identity primary key, version bigint not null, causation bigint not null,
	at timestamptz not null, schema integer not null, kind text collate "C" not null, entity text collate "C" not null,
	type text collate "C" not null, correlation text collate "C" not null, meta text not null, payload bytea not null);
create table raw_outbox (
	seq bigint not null generated always as identity primary key, run_at timestamptz not null default now(),
	attempts integer not null default 0, id text collate "C" not null unique, queue text collate "C" not null, name text collate "C" not null,
	payload bytea not null);
create index on raw_outbox (queue, run_at, seq)`

const (
	rawInsert = `insert into raw_events (version, causation, at, schema, kind, entity, type, correlation, meta, payload)
		select 1, 0, now(), 1, 'account', $1::text, 'deposited', $2::text, '', p from unnest($3::bytea[]) p returning seq`
	rawOutbox = `insert into raw_outbox (id, queue, name, payload)
		select 'journal/tell:' || seq, 'journal', 'journal/tell', convert_to('{"seq":' || seq || '}', 'utf8') from unnest($1::bigint[]) seq`
	rawPage = `select seq, version, causation, at, schema, kind, entity, type, correlation, meta, payload
		from raw_events where seq > $1 order by seq limit $2`
)

func (b *journaled) appendRaw(ctx context.Context, writer, batch int) error {
	return pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error {
		_, err := b.insertRaw(ctx, tx, writer, batch)
		return err
	})
}

// appendOutbox also writes a job for each event, as an application does that keeps an outbox by hand.
func (b *journaled) appendOutbox(ctx context.Context, writer, batch int) error {
	return pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error {
		seqs, err := b.insertRaw(ctx, tx, writer, batch)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, rawOutbox, seqs)
		return err
	})
}

func (b *journaled) insertRaw(ctx context.Context, tx pgx.Tx, writer, batch int) ([]int64, error) {
	rows, err := tx.Query(ctx, rawInsert, strconv.Itoa(writer), core.NewToken(), b.payloads[:batch])
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

// readRaw reads the bare table in pages, and decodes what it reads if that is asked for, as a projection does.
func (b *journaled) readRaw(ctx context.Context, page int, decoded bool) (float64, error) {
	began, n, after := time.Now(), 0, int64(0)
	for {
		all, err := pageRaw(ctx, b.pool, after, page)
		if err != nil {
			return 0, err
		}
		if len(all) == 0 {
			return float64(n) / time.Since(began).Seconds(), nil
		}
		if decoded {
			for i := range all {
				if err := json.Unmarshal(all[i].Payload, &deposit{}); err != nil {
					return 0, err
				}
			}
		}
		n, after = n+len(all), all[len(all)-1].Seq
	}
}

// rebuildRaw reads the bare table and does for each event what the projection does, a page in a transaction.
func (b *journaled) rebuildRaw(ctx context.Context, page int) (float64, error) {
	began, n, after := time.Now(), 0, int64(0)
	for {
		var all []journal.Row
		err := pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) (err error) {
			if all, err = pageRaw(ctx, tx, after, page); err != nil {
				return err
			}
			for i := range all {
				if err := json.Unmarshal(all[i].Payload, &deposit{}); err != nil {
					return err
				}
				if err := upsertBalance(ctx, tx, all[i].Key); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
		if len(all) == 0 {
			return float64(n) / time.Since(began).Seconds(), nil
		}
		n, after = n+len(all), all[len(all)-1].Seq
	}
}

func upsertBalance(ctx context.Context, tx pgx.Tx, key journal.EntityKey) error {
	_, err := tx.Exec(ctx, "insert into balances values ($1, 1) on conflict (account) do update set events = balances.events + 1", key.ID)
	return err
}

type rawReader interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func pageRaw(ctx context.Context, from rawReader, after int64, page int) ([]journal.Row, error) {
	rows, err := from.Query(ctx, rawPage, after, page)
	if err != nil {
		return nil, err
	}
	var all []journal.Row
	for rows.Next() {
		var r journal.Row
		var meta string
		if err := rows.Scan(&r.Seq, &r.Version, &r.Causation, &r.At, &r.Schema, &r.Key.Kind, &r.Key.ID, &r.Type, &r.Correlation, &meta, &r.Payload); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, rows.Err()
}
