package pgxstore_test

import "github.com/stintmq/stint/internal/pgstore/pgstoretest"

const inGauges = "min(run_at) as oldest from {}.ready"

func gaugeMutants() []mutant {
	return []mutant{
		{"gauges measure no due jobs", &pgstoretest.Fault{In: inGauges, Edits: edits{
			{"min(run_at) filter (where run_at <= ", "min(run_at) filter (where false and run_at <= "}}}, []string{"gauges/due"}},
		{"gauges count due jobs as delayed", &pgstoretest.Fault{In: inGauges, Edits: edits{
			{"count(*) filter (where run_at > ", "count(*) filter (where true or run_at > "}}}, []string{"gauges/due"}},
		{"gauges measure the newest", &pgstoretest.Fault{In: inGauges, Edits: edits{
			{"min(run_at) as oldest", "max(run_at) as oldest"}, {"min(oldest)", "max(oldest)"}}}, []string{"gauges/oldest"}},
		{"gauges are in no order", &pgstoretest.Fault{In: inGauges, Edits: edits{
			{"group by queue order by queue", "group by queue order by sum(waiting), queue"}}}, []string{"gauges/gauges"}},
	}
}
