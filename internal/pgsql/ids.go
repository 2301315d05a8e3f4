package pgsql

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/sqlexec"
)

// ownID is the id of a job that was enqueued without one (Q10).
func ownID(seq int64) string { return "#" + strconv.FormatInt(seq, 10) }

// seqOf reads an id of the store's own. Only the spelling that ownID gives counts: "#007" is nobody.
func seqOf(id string) (int64, bool) {
	if !strings.HasPrefix(id, "#") {
		return 0, false
	}
	seq, err := strconv.ParseInt(id[1:], 10, 64)
	return seq, err == nil && seq > 0 && ownID(seq) == id
}

// sane reports whether a text can be one of ours. What it refuses is unknown, not an error.
func sane(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

// saneOnly leaves out what cannot be stored, and so cannot be found.
func saneOnly(list []string) []string {
	out := make([]string, 0, len(list))
	for _, s := range list {
		if sane(s) {
			out = append(out, s)
		}
	}
	return out
}

const (
	sqlFindOwn = `select seq from {}.jobs where seq = $1::bigint and id is null`
	sqlFindID  = `select seq from {}.jobs where id = $1::text`
	sqlNames   = `select seq, id from {}.jobs where seq = any((select $1::bigint[])::bigint[])`
	sqlHolders = `select id, seq, name from {}.jobs where id = any((select $1::text[])::text[])`
)

// find returns the number of the job with an id.
func (s *Session) find(ctx context.Context, id string) (seq int64, found bool, err error) {
	if n, ok := seqOf(id); ok {
		found, err = sqlexec.One(ctx, s.x, []any{&seq}, sqlFindOwn, n)
		return seq, found, err
	}
	if !sane(id) {
		return 0, false, nil
	}
	found, err = sqlexec.One(ctx, s.x, []any{&seq}, sqlFindID, id)
	return seq, found, err
}

// holder is the job that has an id.
type holder struct {
	seq  int64
	name string
}

// holders returns those of the ids, none of them the store's own, that exist.
func (s *Session) holders(ctx context.Context, ids []string) (map[string]holder, error) {
	found := make(map[string]holder, len(ids))
	if len(ids) == 0 {
		return found, nil
	}
	err := sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) error {
		var id string
		var h holder
		err := r.Scan(&id, &h.seq, &h.name)
		found[id] = h
		return err
	}, sqlHolders, ids)
	return found, err
}

// guess finds the jobs that leases are of, without asking the database where Ref or an id of the store's own says it:
// statements check the id, and what they don't find is for resolve. 0: there is none.
func (s *Session) guess(ctx context.Context, leases []core.Lease) ([]int64, error) {
	seqs := make([]int64, len(leases))
	var ask []string
	for i, l := range leases {
		n, own := seqOf(l.ID)
		if seqs[i] = l.Ref; l.Ref == 0 {
			seqs[i] = n
		}
		if seqs[i] == 0 && !own && sane(l.ID) {
			ask = append(ask, l.ID)
		}
	}
	if len(ask) == 0 {
		return seqs, nil
	}
	held, err := s.holders(ctx, ask)
	if err != nil {
		return nil, err
	}
	for i, l := range leases {
		if seqs[i] == 0 {
			seqs[i] = held[l.ID].seq
		}
	}
	return seqs, nil
}

// resolve finds the jobs of a round by their ids alone, whatever Ref says (Q5). 0: there is none.
func (s *Session) resolve(ctx context.Context, leases []core.Lease, part round) (round, error) {
	right := round{part.at, make([]int64, len(part.at))}
	var own []int64
	var ids []string
	for _, i := range part.at {
		if n, ok := seqOf(leases[i].ID); ok {
			own = append(own, n)
		} else if sane(leases[i].ID) {
			ids = append(ids, leases[i].ID)
		}
	}
	names, err := s.idsOf(ctx, own)
	if err != nil {
		return right, err
	}
	held, err := s.holders(ctx, ids)
	if err != nil {
		return right, err
	}
	for n, i := range part.at {
		id := leases[i].ID
		if seq, ok := seqOf(id); !ok {
			right.seqs[n] = held[id].seq
		} else if names[seq] == id {
			right.seqs[n] = seq
		}
	}
	return right, nil
}

// idsOf returns the ids of the jobs that there are.
func (s *Session) idsOf(ctx context.Context, seqs []int64) (map[int64]string, error) {
	names := make(map[int64]string, len(seqs))
	if len(seqs) == 0 {
		return names, nil
	}
	err := sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) error {
		var seq int64
		var id *string
		err := r.Scan(&seq, &id)
		if names[seq] = ownID(seq); id != nil {
			names[seq] = *id
		}
		return err
	}, sqlNames, seqs)
	return names, err
}

// round is a part of a batch in which each job occurs once at most: positions in the batch, and their jobs.
type round struct {
	at   []int
	seqs []int64
}

func (r *round) add(at int, seq int64) { r.at, r.seqs = append(r.at, at), append(r.seqs, seq) }

// ascending is the round in the order of the jobs' numbers, as statements want it.
func (r round) ascending() round {
	order := make([]int, len(r.at))
	for n := range order {
		order[n] = n
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(r.seqs[a], r.seqs[b]) })
	var sorted round
	for _, n := range order {
		sorted.add(r.at[n], r.seqs[n])
	}
	return sorted
}

// rounds splits a batch so that repeats of a job come one after the other, as if in calls of their own: by its id, and
// by the number that a wrong Ref may have in common with another.
func rounds(leases []core.Lease, seqs []int64, use func(i int) bool) []round {
	var list []round
	byID, bySeq := make(map[string]int, len(seqs)), make(map[int64]int, len(seqs))
	for i, seq := range seqs {
		if !use(i) {
			continue
		}
		id := leases[i].ID
		n := max(byID[id], bySeq[seq])
		byID[id] = n + 1
		if seq != 0 {
			bySeq[seq] = n + 1
		}
		for len(list) <= n {
			list = append(list, round{})
		}
		list[n].add(i, seq)
	}
	return list
}

// tokenOf is a token as the contract writes it; Postgres writes uuids with hyphens.
func tokenOf(uuid string) string { return strings.ReplaceAll(uuid, "-", "") }
