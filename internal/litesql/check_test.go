package litesql

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/internal/sqlexec"
)

// TestCheckInvariantsFinds: each invariant, broken, is found, so that a green check means something.
func TestCheckInvariantsFinds(t *testing.T) {
	for _, harm := range []struct{ want, text string }{
		{"exactly one", `delete from stint_work where state = 1`},
		{"exactly one", `insert into stint_work (seq, lane, rank, state, place, run_at) select seq, lane, 0, 1, seq, 0 from stint_finished limit 1`},
		{"another lane or rank", `update stint_work set rank = 5 where seq = (select min(seq) from stint_work)`},
		{"lease", `update stint_work set token = null where state = 3`},
		{"traces", `update stint_work set cancel = 1 where state <> 3`},
		{"totals", `update stint_lanes set completed = completed + 1`},
		{"gaps", `update stint_finished set runs = runs + 1`},
		{"never drawn", `update stint_counter set tick = 1`},
		{"one place", `update stint_work set place = 1 where state = 1`},
	} {
		t.Run(harm.want, func(t *testing.T) {
			db := database(t)
			everything(t, db, func(x sqlexec.Executor) sqlexec.Executor { return x })
			within(t, db, func(x sqlexec.Executor) {
				n, err := x.Exec(context.Background(), harm.text)
				require.NoError(t, err)
				require.NotZero(t, n, "nothing was harmed")
				require.ErrorContains(t, CheckInvariants(context.Background(), x), harm.want)
			})
		})
	}
}
