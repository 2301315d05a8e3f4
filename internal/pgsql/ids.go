package pgsql

import (
	"context"
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

// seqsOf finds the jobs that leases are of; 0: there is none. A Ref saves the look-up by id only where the job that
// it names has that id: where they disagree, the id counts (Q5).
func (s *Session) seqsOf(ctx context.Context, leases []core.Lease) ([]int64, error) {
	guess := make([]int64, len(leases))
	for i, l := range leases {
		if guess[i] = l.Ref; l.Ref == 0 {
			guess[i], _ = seqOf(l.ID)
		}
	}
	names, err := s.idsOf(ctx, guess)
	if err != nil {
		return nil, err
	}
	seqs := make([]int64, len(leases))
	var own []int64
	var ids []string
	for i, l := range leases {
		if names[guess[i]] == l.ID {
			seqs[i] = guess[i]
		} else if n, ok := seqOf(l.ID); ok {
			own = append(own, n)
		} else if sane(l.ID) {
			ids = append(ids, l.ID)
		}
	}
	if len(own)+len(ids) == 0 {
		return seqs, nil
	}
	if names, err = s.idsOf(ctx, own); err != nil {
		return nil, err
	}
	held, err := s.holders(ctx, ids)
	if err != nil {
		return nil, err
	}
	for i, l := range leases {
		if seqs[i] != 0 {
			continue
		}
		if n, ok := seqOf(l.ID); ok && names[n] == l.ID {
			seqs[i] = n
		} else if !ok {
			seqs[i] = held[l.ID].seq
		}
	}
	return seqs, nil
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

// round is a part of a batch in which each job occurs once at most: positions in the batch, and what goes with them.
type round struct {
	at   []int
	seqs []int64
}

// rounds splits a batch so that repeats of a job come one after the other, as if in calls of their own.
func rounds(seqs []int64, use func(i int) bool) []round {
	var list []round
	count := make(map[int64]int, len(seqs))
	for i, seq := range seqs {
		if !use(i) {
			continue
		}
		n := count[seq]
		if seq != 0 {
			count[seq]++
		}
		if n == len(list) {
			list = append(list, round{})
		}
		list[n].at = append(list[n].at, i)
		list[n].seqs = append(list[n].seqs, seq)
	}
	return list
}

// tokenOf is a token as the contract writes it; Postgres writes uuids with hyphens.
func tokenOf(uuid string) string { return strings.ReplaceAll(uuid, "-", "") }
