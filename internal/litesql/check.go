package litesql

import (
	"context"
	"errors"
	"fmt"

	"github.com/stintmq/stint/internal/sqlexec"
)

// invariants are queries that find nothing in a sound store.
var invariants = []struct{ broken, query string }{
	{"a job is not in exactly one of work and finished",
		`select j.seq from stint_jobs j where (select count(*) from stint_work w where w.seq = j.seq) +
			(select count(*) from stint_finished f where f.seq = j.seq) <> 1`},
	{"a job without a lane", `select seq from stint_jobs where lane not in (select lane from stint_lanes)`},
	{"work without a job", `select seq from stint_work where seq not in (select seq from stint_jobs)`},
	{"a finished row without a job", `select seq from stint_finished where seq not in (select seq from stint_jobs)`},
	{"a ledger without a job", `select seq from stint_runs where seq not in (select seq from stint_jobs)`},
	{"work in another lane or rank than its job",
		`select w.seq from stint_work w join stint_jobs j on j.seq = w.seq where w.lane <> j.lane or w.rank <> -j.priority`},
	{"a lease on a job that is not active, or none on one that is",
		`select seq from stint_work where (state = 3) <> (token is not null and until is not null and claimed_at is not null)`},
	{"a pending job with traces of its claim",
		`select seq from stint_work where state <> 3 and (cancel or suspect_at is not null or worker is not null or claimed_at is not null)`},
	{"a lane's totals are not those of its finished jobs",
		`select l.lane from stint_lanes l where completed <> (select count(*) from stint_finished f where f.lane = l.lane and f.state = 5)
			or failed <> (select count(*) from stint_finished f where f.lane = l.lane and f.state = 6)
			or cancelled <> (select count(*) from stint_finished f where f.lane = l.lane and f.state = 7)`},
	{"a key that is not its job's",
		`select d.seq from stint_dedupe d join stint_jobs j on j.seq = d.seq join stint_lanes l on l.lane = j.lane
			where j.dedupe_key is not d.key or l.name <> d.name or j.id is not d.id`},
	{"a ledger with gaps, or longer than it may be",
		`select j.seq from stint_jobs j left join stint_work w on w.seq = j.seq left join stint_finished f on f.seq = j.seq
			where (select count(*) from stint_runs r where r.seq = j.seq) + (f.seq is not null) <> min(coalesce(w.runs, f.runs), 100)
			or (select coalesce(max(number), 0) from stint_runs r where r.seq = j.seq) + (f.seq is not null) <> coalesce(w.runs, f.runs)`},
	{"a number that was never drawn",
		`select seq from stint_work, stint_counter where seq > tick or place > tick
			union all select at from stint_wake, stint_counter where at > tick`},
	{"two waiting jobs of a lane at one place",
		`select min(seq) from stint_work where state = 1 group by lane, place having count(*) > 1`},
}

// CheckInvariants returns an error for each invariant that does not hold. It reads every table: for tests.
func CheckInvariants(ctx context.Context, x sqlexec.Executor) error {
	var errs []error
	for _, inv := range invariants {
		var seq int64
		found, err := sqlexec.One(ctx, x, []any{&seq}, inv.query)
		if err != nil {
			errs = append(errs, err)
		} else if found {
			errs = append(errs, fmt.Errorf("%s (first: %d)", inv.broken, seq))
		}
	}
	return errors.Join(errs...)
}
