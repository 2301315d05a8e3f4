package pgstoretest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
)

// rowsOfALaterRelease: among a hundred jobs some have values that this release cannot read. These are left out;
// claims, lists, sweeps and acks of their neighbours go on, and of the jobs themselves, too.
func rowsOfALaterRelease(t testing.TB, k *Kit) {
	s := k.Open(t, nil)
	schema, ctx := quoted(k.SchemaOf(s)), context.Background()
	reqs := make([]core.EnqueueRequest, 100)
	for i := range reqs {
		reqs[i] = withID(fmt.Sprint("id-", i))
		reqs[i].Metadata = map[string]string{"n": fmt.Sprint(i)}
	}
	Enqueue(t, s, reqs...)
	odd := []struct{ column, value string }{
		{"backoff", "'fibonacci 1 2 3'"}, {"backoff", "'{}'"}, {"backoff", "''"}, {"backoff", "'fixed 99999999999999999999 0 0'"},
		{"metadata", "'[1, 2]'"}, {"metadata", `'{"a": {"b": 1}}'`}, {"metadata", "'null'"}, {"keep", `'{"Completed": 5}'`},
		{"keep", "'[]'"}, {"trace", `'"text"'`}, {"trace", `'{"Parent": 1}'`},
	}
	for i, o := range odd {
		k.Exec(t, fmt.Sprintf("update %s.jobs set %s = %s where id = $1::text", schema, o.column, o.value), fmt.Sprint("id-", i))
	}

	page, err := s.List(ctx, core.Query{Limit: 1000, Ascending: true})
	require.NoError(t, err)
	require.Len(t, page.Jobs, 100)
	require.Zero(t, page.Jobs[0].Backoff, "the default one")
	require.Nil(t, page.Jobs[4].Metadata)
	require.Zero(t, page.Jobs[7].Keep)
	require.Nil(t, page.Jobs[9].Trace)
	require.Equal(t, reqs[50].Metadata, page.Jobs[50].Metadata)
	held := Take(t, s, 100)
	again, err := s.Claim(ctx, core.ClaimRequest{Token: held[0].Token})
	require.NoError(t, err)
	require.Len(t, again.Jobs, 100)
	acks := make([]core.Ack, len(held))
	for i, l := range held {
		acks[i] = core.Ack{Lease: l, Outcome: []core.Outcome{core.OutcomeFail, core.OutcomeRetry}[i%2], Delay: time.Hour,
			Failure: &core.Failure{Message: "no"}}
	}
	res, err := s.Ack(ctx, acks)
	require.NoError(t, err)
	for _, r := range res {
		require.NoError(t, r.Err)
	}

	// What happened to them.
	for _, table := range []string{"finished", "runs"} {
		k.Exec(t, fmt.Sprintf(`update %s.%s set outcome = 'teleported', asked = 'teleport', failure = '["no", 1]'
			where seq in (select seq from %[1]s.jobs where id in ('id-0', 'id-1'))`, schema, table))
	}
	k.Exec(t, fmt.Sprintf("update %s.runs set answered = 9, failure = '5' where seq = (select seq from %[1]s.jobs where id = 'id-3')", schema))
	for _, id := range []string{"id-0", "id-1"} {
		ledger, err := s.Attempts(ctx, id)
		require.NoError(t, err)
		require.Equal(t, core.Outcome("teleported"), ledger[0].Outcome)
		require.Equal(t, &core.Failure{Message: `["no", 1]`}, ledger[0].Failure)
	}
	job, err := s.Get(ctx, "id-0")
	require.NoError(t, err)
	require.Equal(t, &core.Failure{Message: `["no", 1]`}, job.Failure)
	page, err = s.List(ctx, core.Query{States: []core.State{core.StateFailed}, OrderBy: core.OrderFinished, Limit: 1000})
	require.NoError(t, err)
	require.Len(t, page.Jobs, 50)
	res, err = s.Ack(ctx, acks) // each once more
	require.NoError(t, err)
	for i, r := range res {
		if i == 0 || i == 1 || i == 3 {
			require.ErrorIs(t, r.Err, core.ErrLeaseLost, "what this release did not answer")
		} else {
			require.NoError(t, r.Err)
		}
	}

	// Among jobs whose leases have ended.
	for i := 1; i < len(reqs); i += 2 {
		require.NoError(t, s.Promote(ctx, reqs[i].ID))
	}
	got, err := s.Claim(ctx, core.ClaimRequest{Token: core.NewToken(), Wants: []core.Want{{Queue: "q", Names: []string{"job"}, Limit: 100}}})
	require.NoError(t, err)
	require.Len(t, got.Jobs, 50)
	swept, err := s.RecoverStalled(ctx, core.RecoverRequest{})
	require.NoError(t, err)
	require.Len(t, swept, 50)
}

// oddTexts: what Postgres cannot store is refused, where it is asked for unknown, and hurts no neighbour.
func oddTexts(t testing.TB, k *Kit) {
	s := k.Open(t, nil)
	ctx := context.Background()
	for _, bad := range []string{"a\x00b", "a\xffb", "\xed\xa0\x80"} {
		fields := map[string]func(*core.EnqueueRequest){
			"id":       func(r *core.EnqueueRequest) { r.ID = bad },
			"key":      func(r *core.EnqueueRequest) { r.Key = bad },
			"name":     func(r *core.EnqueueRequest) { r.Name = bad },
			"queue":    func(r *core.EnqueueRequest) { r.Queue = bad },
			"metadata": func(r *core.EnqueueRequest) { r.Metadata = map[string]string{"k": bad} },
			"a key":    func(r *core.EnqueueRequest) { r.Metadata = map[string]string{bad: "v"} },
			"trace":    func(r *core.EnqueueRequest) { r.Trace = &core.Trace{Parent: bad} },
		}
		for field, spoil := range fields {
			r := Request("job")
			spoil(&r)
			res, err := s.Enqueue(ctx, []core.EnqueueRequest{Request("job"), r, Request("job")})
			require.NoError(t, err, field)
			var invalid *core.InvalidError
			require.ErrorAs(t, res[1].Err, &invalid, field)
			require.NoError(t, res[0].Err)
			require.NoError(t, res[2].Err)
		}
		held := Take(t, s, 2*len(fields))
		acks := make([]core.Ack, len(held))
		for i, l := range held {
			acks[i] = core.Ack{Lease: l, Outcome: core.OutcomeFail, Result: []byte(bad), Failure: &core.Failure{Message: "fine \\u0000 \\ '"}}
		}
		acks[1].Failure = &core.Failure{Message: bad}
		acks[2].Failure = &core.Failure{Message: "m", Stack: bad}
		acks[3].Lease.ID, acks[3].Lease.Ref = bad, 0
		acks[4].Lease.ID = bad
		acks[5].Lease.Token = bad
		res, err := s.Ack(ctx, acks)
		require.NoError(t, err)
		var invalid *core.InvalidError
		for i, r := range res {
			switch i {
			case 1, 2:
				require.ErrorAs(t, r.Err, &invalid)
			case 3, 4:
				require.ErrorIs(t, r.Err, core.ErrNotFound)
			case 5:
				require.ErrorIs(t, r.Err, core.ErrLeaseLost)
			default:
				require.NoError(t, r.Err)
			}
		}
		lost := []core.Lease{{ID: bad, Token: held[1].Token}, {ID: held[1].ID, Token: bad, Ref: held[1].Ref}}
		x, err := s.Extend(ctx, append(lost, held[1]), time.Hour)
		require.NoError(t, err)
		require.ElementsMatch(t, lost, x.Lost)
		AckAll(t, s, held[1:6])

		_, err = s.Get(ctx, bad)
		require.ErrorIs(t, err, core.ErrNotFound)
		_, err = s.Cancel(ctx, bad)
		require.ErrorIs(t, err, core.ErrNotFound)
		for _, q := range []core.Query{{Queue: bad}, {Name: bad}, {Metadata: map[string]string{"k": bad}}} {
			page, err := s.List(ctx, q)
			require.NoError(t, err)
			require.Empty(t, page.Jobs)
		}
		require.ErrorAs(t, s.Pause(ctx, bad), &invalid)
		got := Claim(t, s, 10, bad, "other")
		require.Empty(t, got.Jobs)
	}
}

// manyInOneCall: 100,000 jobs in one Enqueue, all or none.
func manyInOneCall(t testing.TB, k *Kit) {
	s := k.Open(t, nil)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	reqs := make([]core.EnqueueRequest, 100_000)
	for i := range reqs {
		reqs[i] = Request("job")
	}
	reqs[50_000].Name = strings.Repeat("x", 1000)
	start := time.Now()
	res, err := s.Enqueue(ctx, reqs)
	require.NoError(t, err)
	t.Logf("100,000 jobs in %v", time.Since(start))
	ids := make(map[string]bool, len(res))
	for _, r := range res {
		ids[r.ID] = true
	}
	require.Len(t, ids, len(reqs), "99,999 and one without")
	require.Error(t, res[50_000].Err)
	counts, err := s.Counts(ctx, "q")
	require.NoError(t, err)
	require.EqualValues(t, len(reqs)-1, counts[core.StateWaiting])
}
