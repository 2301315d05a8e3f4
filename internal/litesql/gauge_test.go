package litesql

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/sqlexec"
)

// TestGaugesReadIndexes: counting goes along indexes, and no more rows are read than there are ranks.
func TestGaugesReadIndexes(t *testing.T) {
	for _, step := range plan(t, database(t), sqlGauges) {
		switch {
		case !strings.Contains(step, "stint_work"), strings.Contains(step, "COVERING"):
		case strings.HasPrefix(step, "SEARCH") && strings.Contains(step, "rank=?"): // one row each, for its run_at
		case step == "SCAN stint_work USING INDEX stint_work_active": // what is in flight
		default:
			t.Error(step)
		}
	}
}

// BenchmarkGauges measures 20 lanes with 700,000 waiting and 200,000 delayed jobs.
func BenchmarkGauges(b *testing.B) {
	db := database(b)
	for i := range 20 {
		_, err := db.Exec(sqlNewLane, fmt.Sprint("queue", i%5), fmt.Sprint("name", i))
		require.NoError(b, err)
	}
	for _, sql := range []string{`pragma foreign_keys = off`, `with recursive g (i) as (select 1 union all select i + 1 from g where i < 900000)
		insert into stint_work (seq, lane, rank, state, place, run_at) select i, 1 + i % 20, i % 3, iif(i <= 700000, 1, 2), i, i * 1000 from g`} {
		_, err := db.Exec(sql)
		require.NoError(b, err)
	}
	within(b, db, func(x sqlexec.Executor) {
		for b.Loop() {
			gauges, err := NewSession(x, time.UnixMicro(800_000_000), core.Limits{}).Gauges(context.Background())
			require.NoError(b, err)
			require.Len(b, gauges, 5)
			require.EqualValues(b, 160_000, gauges[0].Waiting)
		}
	})
}
