package pgsql

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
)

// BenchmarkGauges measures five queues with 700,000 waiting and 200,000 delayed jobs.
func BenchmarkGauges(b *testing.B) {
	ctx := context.Background()
	conn, s := migrated(b)
	for _, sql := range []string{
		`insert into {}.ready select i, i, now() - i * interval '1 ms', 1, 100, 0, 0, 0, 0, i % 3, 'queue' || i % 5, 'name' || i % 20
			from generate_series(1, 700000) i`,
		`insert into {}.delayed select i, now() + (i - 800000) * interval '1 s', 1, 100, 0, 0, 0, 0, i % 3, 'queue' || i % 5, 'name' || i % 20
			from generate_series(700001, 900000) i`,
	} {
		_, err := conn.Exec(ctx, s.text(sql))
		require.NoError(b, err)
	}
	for b.Loop() {
		gauges, err := NewSession(s.In(onConn{conn}), nil, core.Limits{}).Gauges(ctx)
		require.NoError(b, err)
		require.Len(b, gauges, 5)
		require.EqualValues(b, 160_000, gauges[0].Waiting)
	}
}
