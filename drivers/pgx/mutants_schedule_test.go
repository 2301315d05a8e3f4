package pgxstore_test

import "github.com/stintmq/stint/internal/pgstore/pgstoretest"

// Texts that say which statement about schedules it is.
const (
	inPut       = "insert into {}.schedules"
	inTickLock  = "from {}.schedules where key = $1::text and next_at"
	inTickMove  = "update {}.schedules set next_at"
	inPutOff    = "update {}.schedules set last_error"
	inDue       = "select min(due_at) from {}.schedules"
	inIsPending = "select seq from {}.finished where seq between j.seq"
)

func scheduleMutants() []mutant {
	const forgets = "last_error = null, retry_at = null, failures = 0"
	return []mutant{
		{"ticks look at no NextAt", &pgstoretest.Fault{In: inTickLock, Edits: edits{
			{"and next_at = $2::timestamptz", "and $2::timestamptz is not null"}}}, []string{"schedule/tick-stale"}},
		{"ticks lock nothing", &pgstoretest.Fault{In: inTickLock, Edits: edits{
			{"for update skip locked", ""}}}, []string{"schedule/concurrent-ticks"}},
		{"ticks wait for a locked schedule", &pgstoretest.Fault{In: inTickLock, Edits: edits{
			{"for update skip locked", "for update"}}}, []string{"HeldScheduleHoldsNobodyUp"}},
		{"a tick stays where it is", &pgstoretest.Fault{In: inTickMove, Edits: edits{
			{"set next_at = $2::timestamptz", "set next_at = coalesce(next_at, $2::timestamptz)"}}}, []string{"schedule/tick"}},
		{"a good tick keeps the error", &pgstoretest.Fault{In: inTickMove, Edits: edits{
			{forgets, "failures = failures"}}}, []string{"schedule/error-cleared"}},
		{"an error moves on", &pgstoretest.Fault{In: inPutOff, Edits: edits{
			{"set last_error", "set next_at = next_at + interval '1 minute', last_error"}}}, []string{"schedule/error"}},
		{"every sweep counts an error", &pgstoretest.Fault{In: inPutOff, Edits: edits{
			{"and (retry_at is null or retry_at <= (select now from t))", ""}}}, []string{"schedule/error-once"}},
		{"nobody looks whether runs overlap", &pgstoretest.Fault{In: inIsPending, Edits: edits{
			{"where id = $1::text and", "where id = $1::text and false and"}}}, []string{"schedule/overlap-skip"}},
		{"finished runs overlap, too", &pgstoretest.Fault{In: inIsPending, Edits: edits{
			{"and (\n\t\tselect seq", "and true or false and (\n\t\tselect seq"}}}, []string{"schedule/overlap-skip"}},
		{"a Put takes the new first slot", &pgstoretest.Fault{In: inPut, Edits: edits{
			{"then s.next_at else", "then excluded.next_at else"}}}, []string{"schedule/put-again", "schedule/concurrent-puts"}},
		{"UTC is another zone than none", &pgstoretest.Fault{In: inPut, Edits: edits{
			{"coalesce(nullif(s.zone, ''), 'UTC') = coalesce(nullif(excluded.zone, ''), 'UTC')", "s.zone = excluded.zone"}}},
			[]string{"schedule/put-again"}},
		{"a Put keeps putting off", &pgstoretest.Fault{In: inPut, Edits: edits{
			{forgets, "last_error = null, failures = 0"}}}, []string{"schedule/error-cleared"}},
		{"NextIn leaves out what was put off", &pgstoretest.Fault{In: inDue, Edits: edits{
			{"select min(due_at)", "select min(next_at)"}}}, []string{"schedule/due-next-in"}},
		{"what was put off is due", &pgstoretest.Fault{In: inDue, Edits: edits{
			{"due_at <=", "next_at <="}}}, []string{"schedule/due-next-in"}},
		{"due in any order", &pgstoretest.Fault{In: inDue, Edits: edits{
			{"order by d.next_at, d.key", "order by d.key desc"}}}, []string{"schedule/due-order"}},
	}
}
