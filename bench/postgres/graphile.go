package postgres

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"os"
	"os/exec"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// graphileScript is its worker.
//
//go:embed graphile.js
var graphileScript string

// graphile is graphile-worker: its SQL function enqueues, a Node process works.
type graphile struct {
	pool   *pgxpool.Pool
	dsn    string
	folder string
}

func openGraphile(folder string) func(context.Context, string) (queue, error) {
	return func(ctx context.Context, dsn string) (queue, error) {
		pool, err := connect(ctx, dsn)
		if err != nil {
			return nil, err
		}
		q := graphile{pool, dsn, folder}
		cmd := q.node("BENCH_MIGRATE=yes")
		cmd.Stdout = os.Stderr
		return q, cmd.Run()
	}
}

func (q graphile) node(env ...string) *exec.Cmd {
	cmd := exec.Command("node", "-e", graphileScript)
	cmd.Dir, cmd.Stderr = q.folder, os.Stderr
	cmd.Env = append(append(os.Environ(), "BENCH_DSN="+q.dsn), env...)
	return cmd
}

const graphileInsert = `select graphile_worker.add_jobs(array(
	select json_populate_record(null::graphile_worker.job_spec, json_build_object('identifier', 'noop', 'payload', json_build_object('text', $2::text)))
	from generate_series(1, $1::int)))`

func (q graphile) insert(ctx context.Context, n int) error {
	return chunks(n, func(n int) error {
		_, err := q.pool.Exec(ctx, "select count(*) from ("+graphileInsert+") j", n, text)
		return err
	})
}

const graphileOne = "select graphile_worker.add_job('noop', json_build_object('text', $1::text))"

func (q graphile) insertOne(ctx context.Context) error {
	_, err := q.pool.Exec(ctx, graphileOne, text)
	return err
}

func (q graphile) insertTx(ctx context.Context) error {
	return pgx.BeginFunc(ctx, q.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, graphileOne, text)
		return err
	})
}

func (q graphile) start(handle func()) (func() error, error) {
	cmd := q.node()
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	read := make(chan error, 1)
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			n, err := strconv.Atoi(lines.Text())
			if err != nil {
				read <- err
				return
			}
			for range n {
				handle()
			}
		}
		read <- lines.Err()
	}()
	return func() error { return errors.Join(in.Close(), <-read, cmd.Wait()) }, nil
}

func (q graphile) left(ctx context.Context) (n int, err error) {
	err = q.pool.QueryRow(ctx, "select count(*) from graphile_worker.jobs").Scan(&n)
	return n, err
}

func (q graphile) close() error {
	q.pool.Close()
	return nil
}
