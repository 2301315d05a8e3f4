package litesql

import (
	"context"

	"github.com/stintmq/stint/internal/sqlexec"
)

// The name may be in use outside or inside: SQLite takes the innermost.
const (
	sqlSavepoint  = `savepoint stint`
	sqlRelease    = `release stint`
	sqlRollBackTo = `rollback to stint`
)

// Undo is a point in somebody's transaction to which it can be taken back.
type Undo struct{ x sqlexec.Executor }

// Savepoint marks a point. It takes no lock.
func Savepoint(ctx context.Context, x sqlexec.Executor) (Undo, error) {
	_, err := x.Exec(ctx, sqlSavepoint)
	return Undo{x}, err
}

// Release keeps what was done since.
func (u Undo) Release(ctx context.Context) error {
	_, err := u.x.Exec(ctx, sqlRelease)
	return err
}

// RollBack undoes what was done since. It fails when the point is gone, which is to say the transaction.
func (u Undo) RollBack(ctx context.Context) error {
	if _, err := u.x.Exec(ctx, sqlRollBackTo); err != nil {
		return err
	}
	return u.Release(ctx)
}
