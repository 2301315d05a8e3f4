package pgxstore_test

import "github.com/stintmq/stint/internal/pgstore/pgstoretest"

type edits = []pgstoretest.Edit

// Texts that say which statement it is.
const (
	inClaim  = "from {}.lanes where queue"
	inJoin   = "d as (delete from {}.delayed where ctid = any("
	inExtend = "update {}.leases set suspect_at = null"
	inEnds   = "delete from {}.leases where seq"

	inPrune     = "delete from {}.finished where ctid = any("
	inPruneEnds = "(select keep::text from {}.jobs"

	inCompleteTx = "order by seq for update),\n"
)

func mutants() []mutant {
	return []mutant{
		{"claims look at no names", &pgstoretest.Fault{In: inClaim, Edits: edits{
			{" and r.name = any($3::text[])", ""}}}, []string{"claim/names"}},
		{"claims look at no pause", &pgstoretest.Fault{In: inClaim, Edits: edits{
			{"not exists (select from {}.paused where queue = $2::text)", "true"}}}, []string{"pause/pause"}},
		{"claims lock the limit per priority", &pgstoretest.Fault{In: inClaim, Edits: edits{
			{"update skip locked) r\n\t\t\tlimit $4::bigint) r", "update skip locked) r\n\t\t\torder by l.priority desc, r.bytes limit $4::bigint) r"}}},
			[]string{"AClaimThatWaits"}},
		{"claims wait for locked jobs", &pgstoretest.Fault{In: inClaim, Edits: edits{
			{"for update skip locked", "for update"}}}, []string{"StrayJobIsFound"}},
		{"claims lock nothing", &pgstoretest.Fault{In: inClaim, Edits: edits{
			{"for update skip locked", ""}}}, []string{"AClaimThatWaits"}},
		{"claims take the lowest priority first", &pgstoretest.Fault{In: inClaim, Edits: edits{
			{"order by priority desc),", "order by priority),"}}}, []string{"order/priority"}},
		{"claims take the newest first", &pgstoretest.Fault{In: inClaim, Edits: edits{
			{"order by r.place limit $4::bigint for update", "order by r.place desc limit $4::bigint for update"}}}, []string{"order/fifo"}},
		{"claims take all that stalled", &pgstoretest.Fault{In: inClaim, Edits: edits{
			{"r.stalls = 0 or ", "true or "}}}, []string{"claim/poison"}},
		{"claims hand out any amount of payload", &pgstoretest.Fault{In: inClaim, Edits: edits{
			{"where total <= $6::bigint or n = 1 and", "where true or"}}}, []string{"claim/payload-cap"}},
		{"claims hand out a first job per want, however full they are", &pgstoretest.Fault{In: inClaim, Edits: edits{
			{"or n = 1 and $13::boolean", "or n = 1"}}}, []string{"claim/payload-cap-over-wants"}},
		{"claims keep the fence", &pgstoretest.Fault{In: inClaim, Edits: edits{
			{"fence + 1", "fence"}}}, []string{"claim/fence"}},
		{"claims take what joins in any order", &pgstoretest.Fault{In: inClaim, Edits: edits{
			{"($5::boolean or not exists (select from next, t where next.run_at <= t.now))", "$5::boolean is not null"}}},
			[]string{"delay/priority-among-due"}},
		{"claims believe that every transaction has ended", &pgstoretest.Fault{In: inClaim, Edits: edits{
			{"pg_snapshot_xmin(pg_current_snapshot())::text::bigint", "9223372036854775807::bigint"}}},
			[]string{"committed/claimed-at-once-elsewhere"}},
		{"NextIn is late", &pgstoretest.Fault{In: inClaim, Edits: edits{
			{"select min(d.run_at) as run_at", "select min(d.run_at) + interval '1 millisecond' as run_at"}}}, []string{"delay/next-in"}},

		{"times are those of the transaction", &pgstoretest.Fault{Edits: edits{
			{"coalesce($1::timestamptz, clock_timestamp())", "coalesce($1::timestamptz, now())"}}}, []string{"TimesComeAfterWaits"}},
		{"cancels look once", &pgstoretest.Fault{In: "w.place is null and w.state < 3", Skip: 1, Edits: edits{
			{"where j.seq = $2::bigint", "where j.seq = $2::bigint and false"}}}, []string{"VerbsFollowTheJob"}},

		{"delayed jobs join an hour early", &pgstoretest.Fault{Edits: edits{
			{"select min(d.run_at) as run_at", "select min(d.run_at) - interval '1 hour' as run_at"},
			{"name = n.name and run_at <= coalesce(", "name = n.name and run_at - interval '1 hour' <= coalesce("}}},
			[]string{"delay/boundary", "realclock/delay"}},
		{"delayed jobs join latest first", &pgstoretest.Fault{In: inJoin, Edits: edits{
			{"from (select * from d order by run_at, seq) d", "from (select * from d order by run_at desc, seq) d"}}},
			[]string{"delay/due-order"}},
		{"delayed jobs join at their old place", &pgstoretest.Fault{In: inJoin, Edits: edits{
			{"seq, nextval('{}.numbers'::regclass),", "seq, seq,"}}}, []string{"order/due-to-the-tail"}},
		{"nobody is told of what joins", &pgstoretest.Fault{In: inJoin, Edits: edits{
			{"select count(*), coalesce", "select 0::bigint, coalesce"}}}, []string{"wake/due-left-over"}},

		{"heartbeats shorten leases", &pgstoretest.Fault{In: inExtend, Edits: edits{
			{"greatest(until,", "greatest('-infinity'::timestamptz,"}}}, []string{"lease/never-shortens"}},
		{"heartbeats look at no token", &pgstoretest.Fault{In: inExtend, Edits: edits{
			{"and token = ($3::uuid[])[width_bucket(seq, $2::bigint[])]", "and $3::uuid[] is not null"}}}, []string{"lease/lost"}},
		{"heartbeats look at no id", &pgstoretest.Fault{In: inExtend, Edits: edits{
			{"($5::text[])[width_bucket(seq, $2::bigint[])]", "any($5::text[]) or true"}}}, []string{"lease/lost"}},
		{"heartbeats leave the suspicion", &pgstoretest.Fault{In: inExtend, Edits: edits{
			{"set suspect_at = null, until", "set until"}}}, []string{"stall/confirm-extended"}},
		{"heartbeats wait for locked leases", &pgstoretest.Fault{In: inExtend, Edits: edits{
			{"for update skip locked", "for update"}}}, []string{"HeldRowHoldsNobodyUp"}},

		{"acks look at no token", &pgstoretest.Fault{In: inEnds, Edits: edits{
			{"and token = ($3::uuid[])[width_bucket(seq, $2::bigint[])]", "and $3::uuid[] is not null"}}},
			[]string{"fencing/wrong-token"}},
		{"acks look at no id", &pgstoretest.Fault{In: inEnds, Edits: edits{
			{"($5::text[])[width_bucket(seq, $2::bigint[])]", "any($5::text[]) or true"}}},
			[]string{"fencing/id-counts"}},
		{"acks wait for locked leases", &pgstoretest.Fault{In: inEnds, Edits: edits{
			{"for update skip locked", "for update"}}}, []string{"HeldRowHoldsNobodyUp"}},
		{"ends forget the token", &pgstoretest.Fault{In: inEnds, Edits: edits{
			{"claimed_at, fence, token, attempts", "claimed_at, fence, null::uuid, attempts"}}}, []string{"repeat/same-outcome"}},
		{"ledger entries forget the token", &pgstoretest.Fault{In: inEnds, Edits: edits{
			{"select seq, now, claimed_at, token, runs + 1", "select seq, now, claimed_at, null::uuid, runs + 1"}}},
			[]string{"repeat/after-new-claims"}},
		{"completing transactions look at no token", &pgstoretest.Fault{In: inCompleteTx, Edits: edits{
			{"and token = ($3::uuid[])[width_bucket(seq, $2::bigint[])]", "and $3::uuid[] is not null"}}},
			[]string{"tx/complete-refused"}},
		{"retries keep their place", &pgstoretest.Fault{In: inEnds, Edits: edits{
			{"case state when 0 then place else nextval('{}.numbers'::regclass) end", "place"}}},
			[]string{"order/retry-to-the-tail"}},
		{"released jobs lose their place", &pgstoretest.Fault{In: inEnds, Edits: edits{
			{"case state when 0 then place else nextval('{}.numbers'::regclass) end", "nextval('{}.numbers'::regclass)"}}},
			[]string{"order/release-keeps-place"}},
		{"outcomes win over a pending cancel", &pgstoretest.Fault{In: inEnds, Edits: edits{
			{"when yields and cancel then", "when yields and cancel and false then"}}}, []string{"cancel/every-outcome"}},
		{"totals are not kept", &pgstoretest.Fault{In: "insert into {}.tallies", Edits: edits{
			{"select queue, name, count(*), 0, 0 from f", "select queue, name, 0, 0, 0 from f"}}}, []string{"counts/counts-follow"}},
		{"the ledger is never trimmed", &pgstoretest.Fault{In: "delete from {}.runs", Edits: edits{
			{"and number <= $2::integer", "and number <= $2::integer and false"}}}, []string{"ledger/newest-hundred"}},

		{"sweeps confirm nothing", &pgstoretest.Fault{Edits: edits{
			{" and suspect_at <= ", " and suspect_at - interval '100 years' <= "}}},
			[]string{"stall/confirm", "realclock/confirm"}},
		{"sweeps take leases that run", &pgstoretest.Fault{Edits: edits{
			{"until <= coalesce($1::timestamptz, statement_timestamp())", "$1::timestamptz is distinct from 'infinity'"}}},
			[]string{"stall/boundary"}},
		{"sweeps take the first claimed", &pgstoretest.Fault{Edits: edits{
			{"order by until, seq limit $3::bigint", "order by seq limit $3::bigint"}}}, []string{"stall/limit"}},

		{"duplicates are always of the same name", &pgstoretest.Fault{In: "from {}.jobs where id = any(", Edits: edits{
			{"select id, seq, name", "select id, seq, 'job'"}}}, []string{"ids/conflict"}},
		{"nobody looks who has an id", &pgstoretest.Fault{In: "from {}.jobs where id = any(", Edits: edits{
			{"select id, seq, name from {}.jobs where", "select id, seq, name from {}.jobs where false and"}}}, []string{"ids/duplicate"}},
		{"ids are locked in the order of the request", &pgstoretest.Fault{In: "insert into {}.jobs", Edits: edits{
			{`order by id collate "C", seq`, "order by seq"}}}, []string{"IDsInOneOrder"}},

		{"appends lock no head", &pgstoretest.Fault{In: "insert into {}.events", Edits: edits{
			{"update {}.entities set version = version + $5::bigint where kind = $2::text and id = $3::text and version = $4::bigint returning version",
				"select version + $5::bigint as version from {}.entities where kind = $2::text and id = $3::text and version = $4::bigint"}}},
			[]string{"JournalRetries"}},
		{"appends take the time before they wait", &pgstoretest.Fault{In: "insert into {}.events", Edits: edits{
			{"coalesce($1::timestamptz, clock_timestamp()) as now from h", "coalesce($1::timestamptz, statement_timestamp()) as now from h"}}},
			[]string{"JournalRetries"}},
		{"barriers have no holders", &pgstoretest.Fault{In: "array(select virtualtransaction from pg_locks", Edits: edits{
			{"l.mode = 'RowExclusiveLock'", "false"}}}, []string{"JournalHoles"}},
		{"barriers wait for nobody", &pgstoretest.Fault{In: "l.virtualtransaction = any($1::text[])", Edits: edits{
			{"l.virtualtransaction = any($1::text[]) or l.pid is null", "$1::text[] is null"}}}, []string{"JournalHoles"}},
		{"barriers wait for whoever looks at the log", &pgstoretest.Fault{In: "pg_locks", Edits: edits{
			{"l.mode = 'RowExclusiveLock'", "l.mode in ('RowExclusiveLock', 'AccessShareLock') and l.pid <> pg_backend_pid()"}}},
			[]string{"JournalNothingElseWaits"}},
		{"barriers leave the reader's own transaction out", &pgstoretest.Fault{In: "array(select virtualtransaction from pg_locks", Edits: edits{
			{"and l.granted", "and l.granted and l.pid is distinct from pg_backend_pid()"}}}, []string{"JournalOwnEvents"}},
		{"horizons are where the sequence is", &pgstoretest.Fault{In: "array(select virtualtransaction from pg_locks", Edits: edits{
			{"(select seq from {}.events order by", "(select seq + 1000 from {}.events order by"}}}, []string{"JournalHoles"}},
		{"pages end at the oldest transaction", &pgstoretest.Fault{In: "pg_is_in_recovery()", Edits: edits{
			{"where seq > $1::bigint", "where seq > $1::bigint and xmin::text::bigint < pg_snapshot_xmin(pg_current_snapshot())::text::bigint"}}},
			[]string{"JournalNothingElseWaits"}},
		{"pages are in the order of transactions", &pgstoretest.Fault{In: "pg_is_in_recovery()", Edits: edits{
			{"where seq > $1::bigint order by seq limit (select case", "where seq > $1::bigint order by version desc limit (select case"}}}, []string{"JournalBytes"}},
		{"pages are of any size", &pgstoretest.Fault{In: "pg_is_in_recovery()", Edits: edits{
			{"where before < $3::bigint", "where $3::bigint > 0"}}}, []string{"JournalLargePages"}},
		{"an entity's pages are of any size", &pgstoretest.Fault{In: "version > $3::bigint", Edits: edits{
			{"where before < $5::bigint", "where $5::bigint > 0"}}}, []string{"JournalLargePages"}},
		{"pages are of any snapshot", &pgstoretest.Fault{In: "pg_is_in_recovery()", Edits: edits{
			{"current_setting('transaction_isolation')", "'read committed'"}}}, []string{"JournalLevels"}},
		{"cursors are not locked", &pgstoretest.Fault{In: "from {}.cursors where name", Edits: edits{
			{" for update", ""}, {" skip locked", ""}}}, []string{"JournalCursors"}},
		{"cursors are waited for while they are made", &pgstoretest.Fault{In: "insert into {}.cursors", Edits: edits{
			{"where pg_try_advisory_xact_lock", "where true or pg_try_advisory_xact_lock"}}}, []string{"JournalCursors"}},
		{"nobody looks how seqs are drawn", &pgstoretest.Fault{In: "from pg_sequence s", Edits: edits{
			{"s.seqcache = 1 and s.seqincrement = 1 and not s.seqcycle", "true"}}}, []string{"JournalSequence"}},
		{"nobody looks what was drawn", &pgstoretest.Fault{In: "pg_sequence_last_value", Edits: edits{
			{"coalesce(pg_sequence_last_value(s.seqrelid), 0)", "9223372036854775807::bigint"}}}, []string{"JournalSequence"}},
		{"prunes are a moment early", &pgstoretest.Fault{In: inPruneEnds, Edits: edits{
			{"coalesce($1::timestamptz, statement_timestamp())", "coalesce($1::timestamptz, now()) + interval '1 microsecond'"}}},
			[]string{"retain/age"}},
		{"prunes let the oldest rule", &pgstoretest.Fault{In: inPruneEnds, Edits: edits{
			{"order by finished_at desc, seq desc limit 1) l", "order by finished_at, seq limit 1) l"}}}, []string{"retain/newest-rules"}},
		{"prunes ignore Keep", &pgstoretest.Fault{In: inPruneEnds, Edits: edits{
			{"(select keep::text from {}.jobs where seq = l.seq)", "null::text"}}}, []string{"retain/count"}},
		{"prunes keep one more than Count", &pgstoretest.Fault{In: "offset $4::bigint limit 1", Edits: edits{
			{"desc limit $4::bigint + 1", "desc limit $4::bigint + 2"}, {"offset $4::bigint limit 1", "offset $4::bigint + 1 limit 1"}}},
			[]string{"retain/count"}},
		{"prunes count by queue", &pgstoretest.Fault{In: "offset $4::bigint limit 1", Edits: edits{
			{"unnest((select $1::text[])) q", "unnest((select $1::text[])[1:1]) q"}}}, []string{"retain/groups"}},
		{"prunes look at no name", &pgstoretest.Fault{In: inPrune, Edits: edits{
			{"and name = $2::text and", "and name >= '' and $2::text is not null and"}}}, []string{"retain/groups"}},
		{"prunes look at no state", &pgstoretest.Fault{In: inPrune, Edits: edits{
			{"and state = $3::smallint", "and $3::smallint is not null"}}}, []string{"retain/states"}},
		{"prunes delete in any order", &pgstoretest.Fault{In: inPrune, Edits: edits{
			{"order by l.finished_at, l.seq limit $8", "order by l.seq desc limit $8"}}}, []string{"retain/limit"}},
		{"prunes have no limit", &pgstoretest.Fault{In: inPrune, Edits: edits{
			{"order by l.finished_at, l.seq limit $8::bigint)", "order by l.finished_at, l.seq)"}}}, []string{"retain/limit"}},
		{"prunes wait for finished jobs", &pgstoretest.Fault{In: inPrune, Edits: edits{
			{"limit 1 for update skip locked) f),", "limit 1 for update) f),"}}}, []string{"PrunesPassHeldRows"}},
		{"prunes wait for jobs", &pgstoretest.Fault{In: inPrune, Edits: edits{
			{"from c)) order by seq for update skip locked", "from c)) order by seq for update"}}}, []string{"PrunesPassHeldRows"}},
		{"prunes delete what was revived", &pgstoretest.Fault{In: inPrune, Edits: edits{
			{"delete from {}.jobs where seq = any(array(select seq from d))", "delete from {}.jobs where seq = any(array(select seq from b))"}}},
			[]string{"PrunesLeaveRevivedJobs"}},
		{"prunes leave the ledger", &pgstoretest.Fault{In: inPrune, Edits: edits{
			{"delete from {}.runs where seq", "delete from {}.runs where false and seq"}}}, []string{"retain/gone"}},
		{"prunes leave the totals", &pgstoretest.Fault{In: inPrune, Edits: edits{
			{"-count(*) filter (where state = 5)", "0"}}}, []string{"retain/count"}},
		{"prunes free all keys", &pgstoretest.Fault{In: inPrune, Edits: edits{
			{"case when $3::smallint = 7 then (", "case when true then ("}}}, []string{"dedupe/pruned"}},
		{"prunes free no keys", &pgstoretest.Fault{In: inPrune, Edits: edits{
			{"x as (delete from {}.dedupe where ctid", "x as (delete from {}.dedupe where false and ctid"}}}, []string{"dedupe/pruned"}},
		{"prunes take no turns", &pgstoretest.Fault{In: "pg_try_advisory_xact_lock", Edits: edits{
			{"select pg_try_advisory_xact_lock(", "select true or pg_try_advisory_xact_lock("}}}, []string{"OnePrunesAtATime"}},

		{"who waits makes a cursor without the lock", &pgstoretest.Fault{In: "insert into {}.cursors", Edits: edits{
			{" where pg_advisory_xact_lock(", " where $1::text is not null or pg_advisory_xact_lock("}}}, []string{"JournalCursors"}},
		{"who does not wait makes a cursor without the lock", &pgstoretest.Fault{In: "insert into {}.cursors", Edits: edits{
			{" where pg_try_advisory_xact_lock(", " where $1::text is not null or pg_try_advisory_xact_lock("}}}, []string{"JournalCursors"}},
		{"busy cursors are waited for", &pgstoretest.Fault{In: "from {}.cursors where name", Edits: edits{
			{" skip locked", ""}}}, []string{"JournalCursors"}},
	}
}
