package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"strings"
	"time"
)

// bare is the limit: what one connection does with prepared statements on one lean table, if nobody asks for
// priorities, delays, names, retries, a ledger, fencing, wakes or handlers that run concurrently.
type bare struct {
	db                             *sql.DB
	insert1, insert50, claim, done *sql.Stmt

	wake chan struct{}
}

const bareBatch = 100

func openBare(folder string) (queue, error) {
	db, err := openSQLite(folder)
	if err != nil {
		return nil, err
	}
	if _, err := db.Exec(`create table jobs (
			seq integer primary key, state integer not null default 0, attempts integer not null default 0,
			until integer, token integer, finished_at integer, payload blob not null
		) strict;
		create index jobs_ready on jobs (seq) where state = 0`); err != nil {
		return nil, err
	}
	q := &bare{db: db, wake: make(chan struct{}, 1)}
	for text, stmt := range map[string]**sql.Stmt{
		`insert into jobs (payload) values (?)`:                               &q.insert1,
		`insert into jobs (payload) values (?)` + strings.Repeat(", (?)", 49): &q.insert50,
		`update jobs set state = 1, attempts = attempts + 1, until = ?, token = ?
			where seq in (select seq from jobs where state = 0 order by seq limit ?) returning seq, payload`: &q.claim,
		`update jobs set state = 2, finished_at = ?
			where seq in (select value from json_each(?)) and state = 1 and token = ?`: &q.done,
	} {
		if *stmt, err = db.Prepare(text); err != nil {
			return nil, err
		}
	}
	return q, nil
}

func (q *bare) insert(ctx context.Context, n int) error {
	many := make([]any, 50)
	for i := range many {
		many[i] = []byte(text)
	}
	return chunks(n, func(n int) error {
		return within(ctx, q.db, func(tx *sql.Tx) error {
			for ; n >= len(many); n -= len(many) {
				if _, err := tx.Stmt(q.insert50).ExecContext(ctx, many...); err != nil {
					return err
				}
			}
			for range n {
				if _, err := tx.Stmt(q.insert1).ExecContext(ctx, many[0]); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func (q *bare) insertOne(ctx context.Context) error {
	_, err := q.insert1.ExecContext(ctx, []byte(text))
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return err
}

func (q *bare) start(handle func()) (func() error, error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- q.work(ctx, handle) }()
	return func() error {
		cancel()
		return <-done
	}, nil
}

// work claims, calls and acks in turn. Statements don't see ctx: it would cost them a goroutine each.
func (q *bare) work(ctx context.Context, handle func()) error {
	for token := time.Now().UnixNano(); ctx.Err() == nil; token++ {
		seqs, err := q.take(token)
		if err != nil {
			return err
		}
		if len(seqs) == 0 {
			select {
			case <-q.wake:
			case <-ctx.Done():
			}
			continue
		}
		for range seqs {
			handle()
		}
		list, err := json.Marshal(seqs)
		if err != nil {
			return err
		}
		if _, err := q.done.Exec(time.Now().UnixMicro(), string(list), token); err != nil {
			return err
		}
	}
	return nil
}

func (q *bare) take(token int64) (seqs []int64, err error) {
	rows, err := q.claim.Query(time.Now().Add(time.Minute).UnixMicro(), token, bareBatch)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var seq int64
		var payload []byte
		if err := rows.Scan(&seq, &payload); err != nil {
			return nil, err
		}
		seqs = append(seqs, seq)
	}
	return seqs, rows.Err()
}

func (q *bare) left(ctx context.Context) (int, error) {
	return count(ctx, q.db, "select count(*) from jobs where state <> 2")
}

func (q *bare) close() error { return q.db.Close() }
