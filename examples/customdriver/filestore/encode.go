package filestore

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// encode returns the lines of the file, jobs in the order of their insertion, and whether any job changed since the
// last time. JSON, not gob: gob drops an empty slice, and an empty result is not none (Q9).
func (st *state) encode() (lines [][]byte, changed bool, err error) {
	head, err := line(header{Format: format, Seq: st.Seq, Count: len(st.jobs)})
	if err != nil {
		return nil, false, err
	}
	lines = append(lines, head)
	for _, j := range st.list(func(*job) bool { return true }, byInsertion) {
		if j.line == nil {
			changed = true
			if j.line, err = line(j); err != nil {
				return nil, false, fmt.Errorf("job %q: %w", j.ID, err)
			}
		}
		lines = append(lines, j.line)
	}
	return lines, changed, nil
}

func line(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	return append(data, '\n'), err
}

// decode refuses what encode did not write.
func decode(data []byte) (*state, error) {
	st := newState()
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields() // a field that we would drop is somebody's who is newer than us
	if err := dec.Decode(&st.header); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	if st.Format != format {
		return nil, fmt.Errorf("format %d is not %d", st.Format, format)
	}
	for {
		j := &job{}
		if err := dec.Decode(j); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("job %d: %w", len(st.jobs)+1, err)
		}
		if j.ID == "" || st.jobs[j.ID] != nil || max(j.Ref, j.Place) > st.Seq {
			return nil, fmt.Errorf("job %q makes no sense", j.ID)
		}
		st.jobs[j.ID] = j
	}
	if len(st.jobs) != st.Count { // cut at the end of a line
		return nil, fmt.Errorf("%d jobs, not %d", len(st.jobs), st.Count)
	}
	return st, nil
}

func byInsertion(a, b *job) int { return cmp.Compare(a.Ref, b.Ref) }
