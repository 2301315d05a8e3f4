package postgres

import (
	"context"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stintmq/stint/core"
)

// lean is the limit: claim, fenced ack and a history in three zones, if nobody asks for delays, retries, pauses, more
// priorities, repeated acks, stalls or wakes.
type lean struct {
	pool *pgxpool.Pool
	mark *atomic.Int64 // no claim need look below
}

const (
	leanSchema = `
		create table if not exists jobs (
			seq bigint generated always as identity primary key, name text not null, queue text not null, payload bytea not null,
			enqueued_at timestamptz not null default clock_timestamp());
		create table if not exists ready (
			seq bigint not null, place bigint not null, queue text not null, priority smallint not null, name text not null,
			attempts int not null, fence bigint not null);
		create index if not exists ready_line on ready (queue, priority, place);
		create table if not exists leases (
			seq bigint primary key, place bigint not null, queue text not null, priority smallint not null, name text not null,
			attempts int not null, fence bigint not null, token uuid not null, until timestamptz not null, claimed_at timestamptz not null);
		create table if not exists finished (
			seq bigint primary key, queue text not null, name text not null, attempts int not null, fence bigint not null,
			token uuid not null, started_at timestamptz not null, finished_at timestamptz not null, result bytea);
		create index if not exists finished_history on finished (queue, name, finished_at, seq);
		alter table ready set (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
		alter table leases set (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off)`

	leanInsert = `with j as (
			insert into jobs (name, queue, payload) select 'noop', 'default', p from unnest($1::bytea[]) p returning seq, queue, name)
		insert into ready (seq, place, queue, priority, name, attempts, fence) select seq, seq, queue, 0, name, 0, 0 from j`

	leanClaim = `with c as (delete from ready where ctid = any(array(
				select ctid from ready where queue = $1::text and priority = 0 and place >= $2::bigint and name = any($3::text[])
				order by place limit $4::bigint for update skip locked)) returning *),
			l as (insert into leases (seq, place, queue, priority, name, attempts, fence, token, until, claimed_at)
				select seq, place, queue, priority, name, attempts, fence + 1, $5::uuid, clock_timestamp() + interval '1 minute', clock_timestamp()
				from c)
		select seq, name, payload from jobs where seq = any(array(select seq from c))`

	leanAck = `with d as (delete from leases where seq = any($1::bigint[]) and token = ($2::uuid[])[array_position($1::bigint[], seq)] returning *)
		insert into finished (seq, queue, name, attempts, fence, token, started_at, finished_at, result)
		select seq, queue, name, attempts + 1, fence, token, claimed_at, clock_timestamp(), ($3::bytea[])[array_position($1::bigint[], seq)]
		from d returning seq`
)

// leanLag is how far below the newest job that was claimed the mark stays: further than concurrent inserts reach.
const leanLag = 5000

func openLean(ctx context.Context, dsn string) (queue, error) {
	pool, err := connect(ctx, dsn)
	if err != nil {
		return nil, err
	}
	_, err = pool.Exec(ctx, leanSchema)
	return lean{pool, new(atomic.Int64)}, err
}

func (l lean) insert(ctx context.Context, n int) error {
	return chunks(n, func(n int) error {
		payloads := make([][]byte, n)
		for i := range payloads {
			payloads[i] = []byte(text)
		}
		_, err := l.pool.Exec(ctx, leanInsert, payloads)
		return err
	})
}

func (l lean) start(handle func()) (func() error, error) {
	return repeat(func(ctx context.Context) (int, error) { return l.once(ctx, handle) }), nil
}

func (l lean) once(ctx context.Context, handle func()) (int, error) {
	token := core.NewToken()
	rows, err := l.pool.Query(ctx, leanClaim, "default", l.mark.Load(), []string{"noop"}, batch, token)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	var seqs []int64
	var newest int64
	for rows.Next() {
		var seq int64
		var name string
		var payload []byte
		if err := rows.Scan(&seq, &name, &payload); err != nil {
			return 0, err
		}
		seqs, newest = append(seqs, seq), max(newest, seq)
		handle()
	}
	if err := rows.Err(); err != nil || len(seqs) == 0 {
		return 0, err
	}
	for old := l.mark.Load(); old < newest-leanLag && !l.mark.CompareAndSwap(old, newest-leanLag); {
		old = l.mark.Load()
	}
	tokens, results := make([]string, len(seqs)), make([][]byte, len(seqs))
	for i := range tokens {
		tokens[i] = token
	}
	_, err = l.pool.Exec(context.WithoutCancel(ctx), leanAck, seqs, tokens, results)
	return len(seqs), err
}

func (l lean) left(ctx context.Context) (n int, err error) {
	err = l.pool.QueryRow(ctx, "select (select count(*) from jobs) - (select count(*) from finished)").Scan(&n)
	return n, err
}

func (l lean) close() error {
	l.pool.Close()
	return nil
}
