package pgstoretest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
)

func withKey(key string, mods ...func(*core.Dedupe)) core.EnqueueRequest {
	r := Request("job")
	r.Dedupe = &core.Dedupe{Key: key}
	for _, m := range mods {
		m(r.Dedupe)
	}
	return r
}

func replacing(d *core.Dedupe) { d.Replace = true }

// dead leaves behind a key whose job has ended.
func dead(t testing.TB, s core.Store, key string) {
	t.Helper()
	Enqueue(t, s, withKey(key))
	AckAll(t, s, Take(t, s, 1))
}

// lockedKeysHoldNobodyUp: while nobody can read or write an entry, claims, heartbeats, sweeps and acks of every kind go on:
// they have nothing to do with entries (Q12).
func lockedKeysHoldNobodyUp(t testing.TB, k *Kit) {
	s := k.Open(t, nil)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	outcomes := []core.Outcome{core.OutcomeComplete, core.OutcomeFail, core.OutcomeRetry, core.OutcomeCancel, core.OutcomeRelease, core.OutcomeSnooze}
	for i := range 2*len(outcomes) + 1 {
		Enqueue(t, s, withKey(fmt.Sprint(i)))
	}
	held := Take(t, s, len(outcomes))
	tx := k.Begin(t, s)
	_, err := tx.X.Exec(ctx, "lock table "+quoted(k.SchemaOf(s))+".dedupe in access exclusive mode")
	require.NoError(t, err)
	x, err := s.Extend(ctx, held, time.Hour)
	require.NoError(t, err)
	require.Equal(t, core.Extended{}, x)
	for i, l := range held {
		res, err := s.Ack(ctx, []core.Ack{{Lease: l, Outcome: outcomes[i]}})
		require.NoError(t, err, outcomes[i])
		require.NoError(t, res[0].Err, outcomes[i])
	}
	token := core.NewToken()
	got, err := s.Claim(ctx, core.ClaimRequest{Token: token, Wants: []core.Want{{Queue: "q", Names: []string{"job"}, Limit: 3}}})
	require.NoError(t, err)
	require.Len(t, got.Jobs, 3)
	taken, err := s.RecoverStalled(ctx, core.RecoverRequest{MaxStalls: 1})
	require.NoError(t, err)
	require.Len(t, taken, 3)
	_, err = s.Cancel(ctx, taken[0].ID)
	require.NoError(t, err)
	require.NoError(t, tx.Rollback())
}

// contendedKey: transactions hold keys, a new one and one that was free again, and do not end. A batch with those keys in
// it does not wait for long, and only their items are refused (Q11).
func contendedKey(t testing.TB, k *Kit) {
	s := k.Open(t, nil)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	dead(t, s, "key-3")
	tx := k.Begin(t, s)
	Enqueue(t, tx.View, withKey("key-7"), withKey("key-3"))
	var reqs []core.EnqueueRequest
	for i := range 10 {
		reqs = append(reqs, withKey(fmt.Sprintf("key-%d", i)), Request("job"))
	}
	reqs = append(reqs, withKey("key-7"), withKey("key-8"))
	res, err := s.Enqueue(ctx, reqs)
	require.NoError(t, err)
	for i, r := range res {
		switch {
		case reqs[i].Dedupe != nil && (reqs[i].Dedupe.Key == "key-7" || reqs[i].Dedupe.Key == "key-3"):
			require.ErrorIs(t, r.Err, core.ErrUnavailable)
		case i == len(res)-1:
			require.NoError(t, r.Err)
			require.True(t, r.Duplicate)
		default:
			require.NoError(t, r.Err)
			require.False(t, r.Duplicate)
		}
	}
	one, err := s.Enqueue(ctx, []core.EnqueueRequest{withKey("key-7")})
	require.NoError(t, err)
	require.ErrorIs(t, one[0].Err, core.ErrUnavailable)
	require.NoError(t, tx.Commit())
	for _, r := range Enqueue(t, s, withKey("key-7"), withKey("key-3")) {
		require.True(t, r.Duplicate)
	}
	require.Len(t, Claim(t, s, 100, "job").Jobs, 20)
}

// losersOfAKey: who waited for a key that a transaction took has made the job if that was rolled back, and is its
// duplicate if it was committed; for a new key, one that was free again, and one whose window is extended (Q12).
func losersOfAKey(t testing.TB, k *Kit) {
	s := k.Open(t, nil)
	ctx := context.Background()
	dead(t, s, "was")
	for _, key := range []string{"new", "was"} {
		for _, commits := range []bool{false, true} {
			tx := k.Begin(t, s)
			winner := Enqueue(t, tx.View, withKey(key))[0]
			require.False(t, winner.Duplicate)
			done := make(chan []core.EnqueueResult)
			go func() {
				res, _ := s.Enqueue(ctx, []core.EnqueueRequest{withKey(key)})
				done <- res
			}()
			k.waiting(t, 1)
			if commits {
				require.NoError(t, tx.Commit())
				require.Equal(t, []core.EnqueueResult{{ID: winner.ID, Duplicate: true}}, <-done)
			} else {
				require.NoError(t, tx.Rollback())
				res := <-done
				require.NoError(t, res[0].Err)
				require.False(t, res[0].Duplicate)
			}
			AckAll(t, s, Take(t, s, 1))
		}
	}
}

// retriesLose: a retry that waited for who takes its key finds out that it was taken (Q8).
func retriesLose(t testing.TB, k *Kit) {
	s := k.Open(t, nil)
	ctx := context.Background()
	id := Enqueue(t, s, withKey("key"))[0].ID
	_, err := s.Cancel(ctx, id)
	require.NoError(t, err)
	tx := k.Begin(t, s)
	winner := Enqueue(t, tx.View, withKey("key"))[0].ID
	done := make(chan error, 1)
	go func() { done <- s.Retry(ctx, id) }()
	k.waiting(t, 1)
	require.NoError(t, tx.Commit())
	var conflict *core.ConflictError
	require.ErrorAs(t, <-done, &conflict)
	require.Equal(t, core.ConflictError{Name: "job", Key: "key", ID: winner}, *conflict)
	require.Len(t, Claim(t, s, 5, "job").Jobs, 1)
}

// removesFreeTheKey: a remove that waited for who moves the window of its job's key frees the key all the same, as a
// prune does (Q12).
func removesFreeTheKey(t testing.TB, k *Kit) {
	s := k.Open(t, nil)
	ctx := context.Background()
	long := func(d *core.Dedupe) { d.TTL, d.Extend = time.Hour, true }
	for _, ends := range []bool{false, true} {
		id := Enqueue(t, s, withKey("key", long))[0].ID
		if ends {
			AckAll(t, s, Take(t, s, 1))
		}
		tx := k.Begin(t, s)
		require.True(t, Enqueue(t, tx.View, withKey("key", long))[0].Duplicate)
		done := make(chan error, 1)
		go func() {
			removed, err := s.Remove(ctx, id)
			if err == nil && !removed {
				err = fmt.Errorf("not removed")
			}
			done <- err
		}()
		k.waiting(t, 1)
		require.NoError(t, tx.Commit())
		require.NoError(t, <-done)
		res := Enqueue(t, s, withKey("key", long))[0]
		require.False(t, res.Duplicate, "the key of a job that was removed is free")
		removed, err := s.Remove(ctx, res.ID)
		require.NoError(t, err)
		require.True(t, removed)
	}
}

// keyOfARefusedID: a job whose key was taken before its id was refused has not taken its key.
func keyOfARefusedID(t testing.TB, k *Kit) {
	s := k.Open(t, nil)
	ctx := context.Background()
	tx := k.Begin(t, s)
	Enqueue(t, tx.View, withID("id"))
	both := withKey("key", func(d *core.Dedupe) { d.TTL = time.Hour })
	both.ID = "id"
	done := make(chan []core.EnqueueResult)
	go func() {
		res, _ := s.Enqueue(ctx, []core.EnqueueRequest{both, withKey("other")})
		done <- res
	}()
	k.waiting(t, 1)
	require.NoError(t, tx.Commit())
	res := <-done
	require.Len(t, res, 2)
	require.Equal(t, core.EnqueueResult{ID: "id", Duplicate: true}, res[0])
	require.NoError(t, res[1].Err)
	require.False(t, res[1].Duplicate)
	require.False(t, Enqueue(t, s, withKey("key"))[0].Duplicate, "the key is free")
}

// keysInOneOrder: as idsInOneOrder, with keys: [b, a] has a already while it waits for b.
func keysInOneOrder(t testing.TB, k *Kit) {
	s := k.Open(t, nil)
	ctx := context.Background()
	first, batch, third := k.Begin(t, s), k.Begin(t, s), k.Begin(t, s)
	Enqueue(t, first.View, withKey("b"))
	enqueue := func(tx *Tx, reqs ...core.EnqueueRequest) <-chan error {
		done := make(chan error, 1)
		go func() {
			_, err := tx.View.Enqueue(ctx, reqs)
			done <- err
		}()
		return done
	}
	both := enqueue(batch, withKey("b"), withKey("a"))
	k.waiting(t, 1)
	one := enqueue(third, withKey("a"))
	require.Eventually(t, func() bool {
		return len(one) > 0 || k.Numbers(t, "select count(*) from pg_locks where not granted")[0] > 1
	}, 5*time.Second, time.Millisecond)
	inOrder := len(one) == 0
	if !inOrder {
		require.NoError(t, <-one)
		require.NoError(t, third.Rollback()) // the batch waits for it next
	}
	require.NoError(t, first.Rollback())
	require.NoError(t, <-both)
	require.NoError(t, batch.Rollback())
	if inOrder {
		require.NoError(t, <-one)
	}
	require.True(t, inOrder, "the batch waits for b and does not have a")
}

// replacedAndNewInOneOrder: a batch that waits for a key whose job it replaces does not have a new one that comes later,
// whether it first took all keys for new or looked at them, as one with an id and a key does.
func replacedAndNewInOneOrder(t testing.TB, k *Kit) {
	looked := withKey("c")
	looked.ID = "c"
	for _, other := range []core.EnqueueRequest{Request("job"), looked} {
		replacedAndNew(t, k, other)
	}
}

func replacedAndNew(t testing.TB, k *Kit, other core.EnqueueRequest) {
	s := k.Open(t, nil)
	ctx := context.Background()
	later := func(key string) core.EnqueueRequest {
		r := withKey(key, replacing)
		r.Delay = time.Hour
		return r
	}
	Enqueue(t, s, later("a"))
	first, third := k.Begin(t, s), k.Begin(t, s)
	Enqueue(t, first.View, later("a"))
	done := make(chan error, 1)
	go func() {
		res, err := s.Enqueue(ctx, []core.EnqueueRequest{later("b"), later("a"), other})
		for _, r := range res {
			err = errors.Join(err, r.Err)
		}
		done <- err
	}()
	k.waiting(t, 1)
	soon, cancel := context.WithTimeout(ctx, 900*time.Millisecond) // less than the batch waits
	defer cancel()
	_, err := third.View.Enqueue(soon, []core.EnqueueRequest{later("b")})
	require.NoError(t, err, "the batch waits for a and does not have b")
	require.NoError(t, first.Rollback())
	require.NoError(t, third.Rollback())
	require.NoError(t, <-done)
	counts, err := s.Counts(ctx, "")
	require.NoError(t, err)
	require.Equal(t, []int64{2, 1}, []int64{counts[core.StateDelayed], counts[core.StateWaiting]})
	k.CheckInvariants(t, k.SchemaOf(s))
}

// longKeyedBatches: batches of several statements that want the same keys and ids, each in its own order, make one job of
// each and don't wait in a circle; the order of their jobs is that of the request (Q11).
func longKeyedBatches(t testing.TB, k *Kit) {
	s := k.Open(t, nil)
	const n = 2100 // more than one statement takes
	batch := func(reverse bool) []core.EnqueueRequest {
		reqs := make([]core.EnqueueRequest, n)
		for i := range reqs {
			at := i
			if reverse {
				at = n - 1 - i
			}
			reqs[at] = withKey(fmt.Sprintf("%04d", i))
			if i%3 == 1 {
				reqs[at].ID = fmt.Sprintf("id-%04d", n-i)
			}
		}
		return reqs
	}
	type answer struct {
		res []core.EnqueueResult
		err error
	}
	done := make(chan answer, 2)
	for _, reverse := range []bool{false, true} {
		go func() {
			res, err := s.Enqueue(context.Background(), batch(reverse))
			done <- answer{res, err}
		}()
	}
	start, made := time.Now(), 0
	for range 2 {
		a := <-done
		require.NoError(t, a.err)
		for _, r := range a.res {
			require.NoError(t, r.Err)
			if !r.Duplicate {
				made++
			}
		}
	}
	require.Less(t, time.Since(start), 10*time.Second)
	require.Equal(t, n, made)
	first := Claim(t, s, 1, "job").Jobs[0].DedupeKey
	require.Contains(t, []string{"0000", fmt.Sprintf("%04d", n-1)}, first, "places are in the order of the request")
}

// replaceAndClaims: a replace that answered success is what runs, whichever of a claim and it comes first (Q12). The
// producer's time is before the job is due, the worker's after.
func replaceAndClaims(t testing.TB, k *Kit) {
	ctx := context.Background()
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	early, late := &fixed{now}, &fixed{now.Add(time.Hour)}
	producer := k.Open(t, early)
	worker := k.OpenAt(t, k.SchemaOf(producer), late)
	enqueue := func(key, content string, d time.Duration, mods ...func(*core.Dedupe)) core.EnqueueRequest {
		r := withKey(key, mods...)
		r.Payload, r.Delay = []byte(content), d
		return r
	}
	// A claim while the replace is not committed takes nothing; after that it takes the new content, in its time.
	id := Enqueue(t, producer, enqueue("a", "old", time.Minute))[0].ID
	tx := k.Begin(t, producer)
	require.True(t, Enqueue(t, tx.View, enqueue("a", "new", 2*time.Hour, replacing))[0].Duplicate)
	require.Empty(t, Claim(t, worker, 1, "job").Jobs)
	require.NoError(t, tx.Commit())
	require.Empty(t, Claim(t, worker, 1, "job").Jobs, "it is delayed by what replaced it")
	late.now = now.Add(2 * time.Hour)
	jobs := Claim(t, worker, 1, "job").Jobs
	require.Len(t, jobs, 1)
	require.Equal(t, []string{id, "new"}, []string{jobs[0].ID, string(jobs[0].Payload)})

	// The job is on its way from the delayed ones when it is to be replaced: a plain duplicate.
	id = Enqueue(t, producer, enqueue("b", "old", time.Minute))[0].ID
	schema := quoted(k.SchemaOf(producer))
	move := k.Begin(t, producer)
	_, err := move.X.Exec(ctx, `with d as (delete from `+schema+`.delayed returning *)
		insert into `+schema+`.ready (seq, place, run_at, fence, bytes, attempts, stalls, snoozes, runs, priority, queue, name)
		select seq, nextval('`+schema+`.numbers'), run_at, fence, bytes, attempts, stalls, snoozes, runs, priority, queue, name from d`)
	require.NoError(t, err)
	done := make(chan []core.EnqueueResult, 1)
	go func() {
		res, _ := producer.Enqueue(ctx, []core.EnqueueRequest{enqueue("b", "new", time.Hour, replacing)})
		done <- res
	}()
	k.waiting(t, 1)
	require.NoError(t, move.Commit())
	require.Equal(t, []core.EnqueueResult{{ID: id, Duplicate: true}}, <-done)
	jobs = Claim(t, worker, 1, "job").Jobs
	require.Len(t, jobs, 1)
	require.Equal(t, []string{id, "old"}, []string{jobs[0].ID, string(jobs[0].Payload)})
	job, err := producer.Get(ctx, id)
	require.NoError(t, err)
	require.Equal(t, "old", string(job.Payload))
}

// fixed is a clock that stands.
type fixed struct{ now time.Time }

func (f *fixed) Now() time.Time { return f.now }
