package litesql

import (
	"context"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/sqlexec"
)

// ownID is the id that the store gives to a job that brought none (Q10).
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

const (
	sqlFindOwn = `select seq from stint_jobs where seq = ? and id is null`
	sqlFindID  = `select seq from stint_jobs where id = ?`
	sqlFindIDs = `select j.id, j.seq, l.name from json_each(?) e
		cross join stint_jobs j on j.id = e.value cross join stint_lanes l on l.lane = j.lane`
	sqlNamed = `select e.key, j.id from json_each(?) e cross join stint_jobs j on j.seq = e.value`
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
	list, err := texts(ids)
	if err != nil {
		return nil, err
	}
	err = sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) error {
		var id string
		var h holder
		if err := r.Scan(&id, &h.seq, &h.name); err != nil {
			return err
		}
		found[id] = h
		return nil
	}, sqlFindIDs, list)
	return found, err
}

// seqsOf finds the jobs that leases are of; 0: there is none. Ref, or the number in an id of the store's own, says
// where to look first, but it is the id that counts: the job may have been removed, and its id come back with another.
func (s *Session) seqsOf(ctx context.Context, leases []core.Lease) ([]int64, error) {
	seqs, guesses := make([]int64, len(leases)), make([]int64, len(leases))
	for i, l := range leases {
		if guesses[i] = l.Ref; l.Ref == 0 {
			guesses[i], _ = seqOf(l.ID)
		}
	}
	err := sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) error {
		var i int
		var id *string
		if err := r.Scan(&i, &id); err != nil {
			return err
		}
		if id == nil && ownID(guesses[i]) == leases[i].ID || id != nil && *id == leases[i].ID {
			seqs[i] = guesses[i]
		}
		return nil
	}, sqlNamed, numbers(guesses))
	if err != nil {
		return nil, err
	}
	return seqs, s.searchIDs(ctx, leases, seqs)
}

// searchIDs looks the remaining leases up by their ids.
func (s *Session) searchIDs(ctx context.Context, leases []core.Lease, seqs []int64) error {
	var ids []string
	for i, l := range leases {
		if seqs[i] != 0 {
			continue
		}
		if own, ok := seqOf(l.ID); ok {
			if own == l.Ref || l.Ref == 0 {
				continue // that was the guess
			}
			var err error
			if seqs[i], _, err = s.find(ctx, l.ID); err != nil {
				return err
			}
		} else if sane(l.ID) {
			ids = append(ids, l.ID)
		}
	}
	held, err := s.holders(ctx, ids)
	if err != nil {
		return err
	}
	for i, l := range leases {
		if seqs[i] == 0 {
			seqs[i] = held[l.ID].seq
		}
	}
	return nil
}
