package core

import "fmt"

// IDOf returns the id that Key derives for a payload; "" if the job has no Key, so that the store gives the id. An id
// that core.ID gives is none of Key's.
func (j *Job[P, R]) IDOf(payload P) string {
	if j.opts.Key == nil {
		return ""
	}
	key := j.opts.Key(payload)
	if key == "" {
		return ""
	}
	return (&EnqueueRequest{Name: j.name, Key: key}).ResolvedID()
}

// Payload decodes the payload of a record. One of another job is a ConflictError.
func (j *Job[P, R]) Payload(rec Record) (P, error) {
	var payload P
	if rec.Name != j.name {
		return payload, &ConflictError{Name: rec.Name, ID: rec.ID}
	}
	if err := j.opts.Codec.Unmarshal(rec.Payload, &payload); err != nil {
		return payload, fmt.Errorf("stint: decode payload of %s: %w", rec.ID, err)
	}
	return payload, nil
}

// Result decodes the result of a completed job. One that is not completed is a *JobError that says how it stands, one
// of another job a ConflictError.
func (j *Job[P, R]) Result(rec Record) (R, error) {
	var result R
	switch {
	case rec.Name != j.name:
		return result, &ConflictError{Name: rec.Name, ID: rec.ID}
	case rec.State != StateCompleted:
		return result, &JobError{ID: rec.ID, State: rec.State, Failure: rec.Failure}
	}
	return j.decodeResult(rec)
}
