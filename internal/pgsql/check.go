package pgsql

import (
	"context"
	"errors"
	"fmt"

	"github.com/stintmq/stint/internal/sqlexec"
)

// invariants are queries that find nothing in a sound store.
var invariants = []struct{ broken, query string }{
	{"a job is not in exactly one zone",
		`select j.seq from {}.jobs j where (select count(*) from {}.ready w where w.seq = j.seq)
			+ (select count(*) from {}.delayed w where w.seq = j.seq) + (select count(*) from {}.leases w where w.seq = j.seq)
			+ (select count(*) from {}.finished w where w.seq = j.seq) <> 1`},
	{"a waiting job without a body", `select seq from {}.ready where seq not in (select seq from {}.jobs)`},
	{"a delayed job without a body", `select seq from {}.delayed where seq not in (select seq from {}.jobs)`},
	{"a lease without a body", `select seq from {}.leases where seq not in (select seq from {}.jobs)`},
	{"an end without a body", `select seq from {}.finished where seq not in (select seq from {}.jobs)`},
	{"a ledger without a job", `select seq from {}.runs where seq not in (select seq from {}.jobs)`},
	{"a job is filed under another queue, name, priority or size than its own",
		`select j.seq from {}.jobs j join (
				select seq, queue, name, priority, bytes from {}.ready
				union all select seq, queue, name, priority, bytes from {}.delayed
				union all select seq, queue, name, priority, bytes from {}.leases
			) w on w.seq = j.seq
			where (w.queue, w.name, w.priority, w.bytes) <> (j.queue, j.name, j.priority, coalesce(octet_length(j.payload), 0))
		union all
		select j.seq from {}.jobs j join {}.finished f on f.seq = j.seq where (f.queue, f.name) <> (j.queue, j.name)`},
	{"a job on a lane that nobody knows",
		`select seq from {}.jobs where (queue, priority) not in (select queue, priority from {}.lanes)`},
	{"the totals are not those of the finished jobs",
		`select count(*) from (
			select queue, name, sum(completed) as c, sum(failed) as f, sum(cancelled) as x from {}.tallies group by queue, name) a
			full join (
			select queue, name, count(*) filter (where state = 5) as c, count(*) filter (where state = 6) as f,
				count(*) filter (where state = 7) as x from {}.finished group by queue, name) b using (queue, name)
			where coalesce(a.c, 0) <> coalesce(b.c, 0) or coalesce(a.f, 0) <> coalesce(b.f, 0) or coalesce(a.x, 0) <> coalesce(b.x, 0)
			having count(*) > 0`},
	{"a key that is not its job's",
		`select d.seq from {}.dedupe d join {}.jobs j on j.seq = d.seq
			where j.dedupe_key is distinct from d.key or j.name <> d.name or j.id is distinct from d.id`},
	{"a job that waits at another time than its body says, and was never claimed",
		`select d.seq from {}.delayed d join {}.jobs j on j.seq = d.seq where d.fence = 0 and d.run_at <> j.run_at`},
	{"a ledger with gaps, or longer than it may be",
		`select j.seq from {}.jobs j join (
				select seq, runs, 0 as last from {}.ready
				union all select seq, runs, 0 from {}.delayed
				union all select seq, runs, 0 from {}.leases
				union all select seq, runs, 1 from {}.finished
			) w on w.seq = j.seq
			where (select count(*) from {}.runs r where r.seq = j.seq) + w.last <> least(w.runs, 100)
				or (select coalesce(max(number), 0) from {}.runs r where r.seq = j.seq) + w.last <> w.runs`},
	{"a number that was never drawn",
		`select seq from {}.jobs where seq > (select last_value from {}.numbers)
			union all select seq from {}.ready where place > (select last_value from {}.numbers)`},
	{"two waiting jobs of a queue at one place",
		`select min(seq) from {}.ready group by queue, priority, place having count(*) > 1`},
}

// CheckInvariants returns an error for each invariant that does not hold. It reads every table: for tests.
func (s *Schema) CheckInvariants(ctx context.Context, x sqlexec.Executor) error {
	x = s.In(x)
	var errs []error
	for _, inv := range invariants {
		var seq int64
		found, err := sqlexec.One(ctx, x, []any{&seq}, inv.query)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", inv.broken, err))
		} else if found {
			errs = append(errs, fmt.Errorf("%s (first: %d)", inv.broken, seq))
		}
	}
	return errors.Join(errs...)
}
