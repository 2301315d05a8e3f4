package litesql

import (
	"context"

	"github.com/stintmq/stint/internal/sqlexec"
)

// laneKey is what a lane stands for.
type laneKey struct{ queue, name string }

const (
	sqlLane    = `select lane from stint_lanes where queue = ? and name = ?`
	sqlNewLane = `insert into stint_lanes (queue, name) values (?, ?) returning lane`
	sqlTotals  = `update stint_lanes set completed = completed + ?, failed = failed + ?, cancelled = cancelled + ?
		where lane = ?`
)

// laneOf returns the lane of a queue and name, making it if need be. Lanes are asked for in each call anew: a
// cache would outlive a transaction that is rolled back.
func (s *Session) laneOf(ctx context.Context, key laneKey) (lane int64, err error) {
	found, err := sqlexec.One(ctx, s.x, []any{&lane}, sqlLane, key.queue, key.name)
	if err != nil || found {
		return lane, err
	}
	_, err = sqlexec.One(ctx, s.x, []any{&lane}, sqlNewLane, key.queue, key.name)
	return lane, err
}

// totals counts a call's finished jobs per lane, so that a batch writes each lane once.
type totals map[int64]*[3]int64

func (t totals) add(lane, state, n int64) {
	counts := t[lane]
	if counts == nil {
		counts = new([3]int64)
		t[lane] = counts
	}
	counts[state-completed] += n
}

func (t totals) exec(ctx context.Context, x sqlexec.Executor) error {
	for lane, n := range t {
		if _, err := x.Exec(ctx, sqlTotals, n[0], n[1], n[2], lane); err != nil {
			return err
		}
	}
	return nil
}
