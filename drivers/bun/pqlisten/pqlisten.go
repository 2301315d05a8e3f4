// Package pqlisten has stores of package bunstore hear of the work of other processes over lib/pq:
//
//	listen, err := pqlisten.To(dsn)
//	...
//	store, err := bunstore.New(bundb, bunstore.Options{Listen: listen})
package pqlisten

import (
	"context"

	bunstore "github.com/stintmq/stint/drivers/bun"
	"github.com/stintmq/stint/internal/pqlisten"
)

// To opens a connection of its own, since those of a *sql.DB of lib/pq can't listen: dsn is lib/pq's connection string
// of the same database. It may name another host than the *bun.DB: a pooler that shares connections between
// transactions can't listen. It is never logged, and errors don't show it. One that can't be read is a
// *core.InvalidError.
func To(dsn string) (func(ctx context.Context, channel string) (bunstore.Listener, error), error) {
	connect, err := pqlisten.To(dsn)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, channel string) (bunstore.Listener, error) { return connect(ctx, channel) }, nil
}
