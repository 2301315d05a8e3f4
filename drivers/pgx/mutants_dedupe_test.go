package pgxstore_test

import "github.com/stintmq/stint/internal/pgstore/pgstoretest"

// Texts that say which statement it is.
const (
	inEntries = "with ordinality as u (name, key, n)"
	inLock    = "select name, key, 0, nextval("
	inTake    = "insert into {}.dedupe as e (name, key, seq, turn, was, until, id)"
	inReplace = "update {}.jobs set run_at"
	inWindows = "update {}.dedupe set until"
	inRevive  = "turn = $5::bigint for update"
	inRemove  = "delete from {}.jobs where seq = (select seq from d)"
)

func dedupeMutants() []mutant {
	return []mutant{
		{"acks write entries", &pgstoretest.Fault{In: inEnds, Edits: edits{
			{"k as (\n\t\t\tinsert into {}.tallies", "zz as (update {}.dedupe set until = until where seq in (select seq from d)),\n\t\tk as (\n\t\t\tinsert into {}.tallies"}}},
			[]string{"LockedKeysHoldNobodyUp"}},
		{"claims read entries", &pgstoretest.Fault{In: inClaim, Edits: edits{
			{"where queue = $2::text and not exists (select from {}.paused", "where (select count(*) from {}.dedupe) >= 0 and queue = $2::text and not exists (select from {}.paused"}}},
			[]string{"LockedKeysHoldNobodyUp"}},
		{"keys are taken whoever has them", &pgstoretest.Fault{In: inTake, Edits: edits{
			{"where e.turn = excluded.was", "where e.turn is not null"}}}, []string{"LosersOfAKey"}},
		{"keys that are free again are not taken", &pgstoretest.Fault{In: inTake, Edits: edits{
			{"where e.turn = excluded.was", "where e.turn is null"}}}, []string{"dedupe/pending"}},
		{"keys are locked in the order of the request", &pgstoretest.Fault{In: inTake, Edits: edits{
			{`order by name collate "C", key collate "C"`, "order by seq"}}}, []string{"KeysInOneOrder"}},
		{"keys of a replace are locked backwards", &pgstoretest.Fault{In: inLock, Edits: edits{
			{`order by name collate "C", key collate "C"`, `order by name collate "C" desc, key collate "C" desc`}}}, []string{"ReplacedAndNewInOneOrder"}},
		{"jobs are inserted without their key", &pgstoretest.Fault{In: inTake, Edits: edits{
			{"where key = '' or was = -1 or seq in (select seq from k)", "where true"}}}, []string{"LosersOfAKey"}},
		{"jobs do not know their key", &pgstoretest.Fault{In: inTake, Edits: edits{
			{"nullif(key, '')", "null"}}}, []string{"dedupe/record"}},
		{"windows begin when the database likes", &pgstoretest.Fault{In: inTake, Edits: edits{
			{"case when ttl > 0 then (select now from t)", "case when ttl > 0 then now()"}}}, []string{"dedupe/window"}},
		{"entries forget the id", &pgstoretest.Fault{In: inTake, Edits: edits{
			{"end, nullif(id, '')", "end, null"}}}, []string{"dedupe/id-and-key"}},
		{"active jobs are not seen", &pgstoretest.Fault{In: inEntries, Edits: edits{
			{"select 3 from {}.leases where seq = e.seq", "select 3 from {}.leases where false"}}}, []string{"dedupe/pending"}},
		{"what is due is replaced", &pgstoretest.Fault{Edits: edits{
			{"select case when run_at <= coalesce($1::timestamptz, statement_timestamp()) then 1 else 2 end from {}.delayed where ctid",
				"select case when $1::timestamptz is null then 1 else 2 end from {}.delayed where ctid"},
			{"{}.delayed where seq between h.seq and h.seq and run_at > (select now from t)", "{}.delayed where seq between h.seq and h.seq"}}},
			[]string{"replace/not-delayed"}},
		{"replaces reach the body alone", &pgstoretest.Fault{In: inReplace, Edits: edits{
			{"array(select tid from d where due > (select now from t))", "array(select tid from d where false)"}}}, []string{"replace/every-field"}},
		{"replaces reach the delayed row alone", &pgstoretest.Fault{In: inReplace, Edits: edits{
			{"where seq = any(array(select seq from d))", "where seq = any(array(select seq from d)) and false"}}}, []string{"ReplaceAndClaims"}},
		{"replaces reach the body of what is on its way", &pgstoretest.Fault{In: inReplace, Edits: edits{
			{"where seq = any(array(select seq from d))", "where seq = any($2::bigint[])"},
			{"(select due from d where d.seq = jobs.seq)", "coalesce((select due from d where d.seq = jobs.seq), run_at)"}}},
			[]string{"ReplaceAndClaims"}},
		{"replaced jobs keep their size and priority", &pgstoretest.Fault{In: inReplace, Edits: edits{
			{"priority = ($11::smallint[])[width_bucket(seq, $2::bigint[])],\n\t\t\tbytes", "priority = priority,\n\t\t\tbytes"}}},
			[]string{"replace/priority"}},
		{"replaces lead to lanes that are not there", &pgstoretest.Fault{In: inReplace, Edits: edits{
			{"where $21::boolean and not exists", "where $21::boolean and false and not exists"}}}, []string{"replace/every-field"}},
		{"replaces wake nobody elsewhere", &pgstoretest.Fault{In: inReplace, Edits: edits{
			{"select seq, queue, priority, place, due, $21", "select seq, 'x' || queue, priority, place, due, $21"},
			{"' ' || due || ' ' || queue", "' ' || due || ' x' || queue"}}}, []string{"replace/wakes"}},
		{"replaces move no window", &pgstoretest.Fault{In: inReplace, Edits: edits{
			{"where ctid = any(array(select entry from d))", "where false"}}}, []string{"replace/window"}},
		{"drops extend nothing", &pgstoretest.Fault{In: inWindows, Edits: edits{
			{"where ctid = any(array(select tid from h)) returning seq", "where ctid = any(array(select tid from h)) and turn < 0 returning seq"}}},
			[]string{"dedupe/extend"}},
		{"retries take no key", &pgstoretest.Fault{In: inRevive, Edits: edits{
			{"where ctid = any(array(select tid from h)) and exists (select from f)", "where false"}}}, []string{"dedupe/retry"}},
		{"retries close their window", &pgstoretest.Fault{In: inRevive, Edits: edits{
			{"case when $7::boolean then until end", "case when $7::boolean then null::timestamptz end"}}}, []string{"dedupe/retry-window"}},
		{"retries look at no turn", &pgstoretest.Fault{In: inRevive, Edits: edits{
			{"and key = $4::text and turn = $5::bigint for update", "and key = $4::text and turn <> $5::bigint + 1000000000 for update"}}},
			[]string{"RetriesLose"}},
		{"removed jobs keep their key", &pgstoretest.Fault{In: inRemove, Edits: edits{
			{"delete from {}.dedupe where name = (select name from h)", "delete from {}.dedupe where false and name = (select name from h)"}}}, []string{"dedupe/ended-in-window"}},
		{"Remove frees the key of whoever has it", &pgstoretest.Fault{In: inRemove, Edits: edits{
			{"and key = j.dedupe_key and seq = j.seq", "and key = j.dedupe_key"}}}, []string{"dedupe/remove"}},
	}
}
