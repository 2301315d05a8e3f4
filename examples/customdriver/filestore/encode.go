package filestore

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// encode is the file's content, jobs in the order of their insertion. JSON, not gob: gob drops an empty slice, and
// an empty result is not none (Q9).
func (st *state) encode() ([]byte, error) {
	head := st.header
	head.Count = len(st.jobs)
	data, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	out := append(data, '\n')
	for _, j := range st.list(func(*job) bool { return true }, byInsertion) {
		if j.line == nil {
			if j.line, err = json.Marshal(j); err != nil {
				return nil, fmt.Errorf("job %q: %w", j.ID, err)
			}
		}
		out = append(append(out, j.line...), '\n')
	}
	return out, nil
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
