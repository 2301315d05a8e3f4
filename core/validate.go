package core

import (
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"
)

// The bounds of Q10 and Q13, in bytes where nothing else is said.
const (
	MaxNameBytes     = 128      // job names and queues
	MaxKeyBytes      = 255      // idempotency keys, dedupe keys, metadata keys, worker names
	MaxIDBytes       = 512      // explicit ids
	MaxMetadataBytes = 64 << 10 // all keys and values together
	MinPriority      = -9
	MaxPriority      = 9
	DefaultPayload   = 1 << 20
	MaxPayload       = 64 << 20
)

// Limits are the bounds that a store's options may move. The zero value is the default.
type Limits struct {
	Payload int // largest payload, and largest result, in bytes; 0: 1 MiB; at most 64 MiB
}

// Validate refuses a Payload limit outside 0 to 64 MiB.
func (l Limits) Validate() error {
	if l.Payload < 0 || l.Payload > MaxPayload {
		return &InvalidError{"Limits.Payload", fmt.Sprintf("must be 0 to %d bytes", MaxPayload)}
	}
	return nil
}

func (l Limits) payload() int {
	if l.Payload == 0 {
		return DefaultPayload
	}
	return l.Payload
}

// ResolvedID is the id that the request asks for: ID, else name:key, else "" for one that the store assigns (Q10).
// Names have no colon, so no two pairs of name and key meet.
func (r EnqueueRequest) ResolvedID() string {
	if r.ID == "" && r.Key != "" {
		return r.Name + ":" + r.Key
	}
	return r.ID
}

// Validate checks everything that can be known without the store (Q10, Q13). Every store calls it first.
// The error is an *InvalidError that names the field.
func (r EnqueueRequest) Validate(l Limits) error {
	if err := ValidateName("Name", r.Name); err != nil {
		return err
	}
	if r.ID != "" && (r.ID[0] == '#' || r.ID[0] == '@') {
		return &InvalidError{"ID", "must not begin with # or @, which the store's own ids do"}
	}
	return r.validate(l)
}

// validate checks a request that may have an id of the store's own making.
func (r EnqueueRequest) validate(l Limits) error {
	if err := ValidateName("Name", r.Name); err != nil {
		return err
	}
	if err := ValidateQueue("Queue", r.Queue); err != nil {
		return err
	}
	if err := r.validateID(); err != nil {
		return err
	}
	if err := validateBytes("Payload", r.Payload, l); err != nil {
		return err
	}
	if err := r.validateMetadata(); err != nil {
		return err
	}
	if err := r.validateNumbers(); err != nil {
		return err
	}
	if err := r.validateTimes(); err != nil {
		return err
	}
	if err := r.Backoff.validate(); err != nil {
		return err
	}
	if err := r.Keep.validate("Keep"); err != nil {
		return err
	}
	if err := r.Dedupe.validate(); err != nil {
		return err
	}
	return r.Trace.validate()
}

func (r *EnqueueRequest) validateID() error {
	if r.ID != "" {
		if err := validateText("ID", r.ID, MaxIDBytes); err != nil {
			return err
		}
	}
	if r.Key != "" {
		return validateText("Key", r.Key, MaxKeyBytes)
	}
	return nil
}

func (r *EnqueueRequest) validateMetadata() error {
	size := 0
	for k, v := range r.Metadata {
		if k == "" {
			return &InvalidError{"Metadata", "has an empty key"}
		}
		if err := validateText("Metadata", k, MaxKeyBytes); err != nil {
			return err
		}
		if !utf8.ValidString(v) || strings.IndexByte(v, 0) >= 0 {
			return &InvalidError{"Metadata", fmt.Sprintf("value of %q is not valid UTF-8 without NUL", k)}
		}
		size += len(k) + len(v)
	}
	if size > MaxMetadataBytes {
		return &InvalidError{"Metadata", fmt.Sprintf("has %d bytes, more than %d", size, MaxMetadataBytes)}
	}
	return nil
}

func (r *EnqueueRequest) validateNumbers() error {
	switch {
	case r.Priority < MinPriority || r.Priority > MaxPriority:
		return &InvalidError{"Priority", fmt.Sprintf("must be %d to %d", MinPriority, MaxPriority)}
	case r.MaxAttempts < 1 || r.MaxAttempts > maxCount:
		return &InvalidError{"MaxAttempts", fmt.Sprintf("must be 1 to %d", maxCount)}
	case r.MaxStalls < -1 || r.MaxStalls > maxCount:
		return &InvalidError{"MaxStalls", fmt.Sprintf("must be -1 to %d", maxCount)}
	}
	return nil
}

const maxCount = 1<<31 - 1 // what an SQL integer holds

func (r *EnqueueRequest) validateTimes() error {
	switch {
	case r.Timeout < 0:
		return &InvalidError{"Timeout", "must not be negative"}
	case r.Delay < 0:
		return &InvalidError{"Delay", "must not be negative"}
	case r.Delay > 0 && !r.RunAt.IsZero():
		return &InvalidError{"RunAt", "is set together with Delay"}
	case !r.RunAt.IsZero() && (r.RunAt.UTC().Year() < 1 || r.RunAt.UTC().Year() > 9999):
		return &InvalidError{"RunAt", "must be in the years 1 to 9999"}
	}
	return nil
}

func (k *Keep) validate(field string) error {
	for _, s := range []struct {
		field string
		rule  KeepRule
	}{{field + ".Completed", k.Completed}, {field + ".Failed", k.Failed}, {field + ".Cancelled", k.Cancelled}} {
		switch r := s.rule; {
		case r.Count < 0 || r.Count > maxCount || r.Age < 0:
			return &InvalidError{s.field, "Count and Age must not be negative"}
		case r.None && r.Forever, (r.None || r.Forever) && (r.Count != 0 || r.Age != 0):
			return &InvalidError{s.field, "None, Forever and a bound exclude each other"}
		}
	}
	return nil
}

func (d *Dedupe) validate() error {
	switch {
	case d == nil:
		return nil
	case d.Key == "":
		return &InvalidError{"Dedupe.Key", "must not be empty"}
	case d.TTL < 0:
		return &InvalidError{"Dedupe.TTL", "must not be negative"}
	case d.Extend && d.TTL == 0:
		return &InvalidError{"Dedupe.Extend", "needs a TTL"}
	}
	return validateText("Dedupe.Key", d.Key, MaxKeyBytes)
}

func (t *Trace) validate() error {
	if t == nil {
		return nil
	}
	if err := validateText("Trace.Parent", t.Parent, MaxKeyBytes); err != nil {
		return err
	}
	return validateText("Trace.State", t.State, MaxIDBytes)
}

// Validate checks a claim (Q4). A Want without Names, or with Limit 0, is valid and gets nothing.
func (r ClaimRequest) Validate() error {
	if err := ValidateToken("Token", r.Token); err != nil {
		return err
	}
	if r.Lease < 0 {
		return &InvalidError{"Lease", "must not be negative"}
	}
	for _, w := range r.Wants {
		if w.Limit < 0 {
			return &InvalidError{"Wants.Limit", "must not be negative"}
		}
	}
	return validateText("Worker", r.Worker, MaxKeyBytes)
}

// Validate checks one ack; the error belongs into its AckResult (Q6, Q13).
func (a Ack) Validate(l Limits) error {
	switch a.Outcome {
	case OutcomeComplete, OutcomeRetry, OutcomeFail, OutcomeCancel, OutcomeRelease, OutcomeSnooze:
	default:
		return &InvalidError{"Outcome", fmt.Sprintf("%q is none that can be asked for", string(a.Outcome))}
	}
	if a.Delay < 0 {
		return &InvalidError{"Delay", "must not be negative"}
	}
	if f := a.Failure; f != nil {
		for _, s := range []string{f.Message, f.Type, f.Stack} {
			if !utf8.ValidString(s) || strings.IndexByte(s, 0) >= 0 || len(s) > MaxFailureBytes {
				return &InvalidError{"Failure", fmt.Sprintf("texts must be valid UTF-8 without NUL of at most %d bytes", MaxFailureBytes)}
			}
		}
	}
	return validateBytes("Result", a.Result, l)
}

// MaxFailureBytes bounds each text of a Failure (Q22).
const MaxFailureBytes = 64 << 10

// Validate checks a sweep (Q7).
func (r RecoverRequest) Validate() error {
	if r.Limit < 0 {
		return &InvalidError{"Limit", "must not be negative"}
	}
	if r.Confirm < 0 {
		return &InvalidError{"Confirm", "must not be negative"}
	}
	return nil
}

// Validate checks the filters of a List (Q27); the cursor is the store's to read.
func (q Query) Validate() error {
	switch q.OrderBy {
	case "", OrderEnqueued, OrderRun, OrderFinished:
	default:
		return &InvalidError{"OrderBy", fmt.Sprintf("unknown order %q", string(q.OrderBy))}
	}
	if q.Limit < 0 || q.Limit > MaxListLimit {
		return &InvalidError{"Limit", fmt.Sprintf("must be 0 to %d", MaxListLimit)}
	}
	for _, s := range q.States {
		if !s.Pending() && !s.Terminal() {
			return &InvalidError{"States", fmt.Sprintf("unknown state %q", string(s))}
		}
	}
	return nil
}

// PageSize is Limit, or the default for 0.
func (q Query) PageSize() int {
	if q.Limit == 0 {
		return DefaultListLimit
	}
	return q.Limit
}

// The sizes of a List's page.
const (
	DefaultListLimit = 50
	MaxListLimit     = 1000
)

// ValidateName checks a job's name: 1 to 128 bytes of valid UTF-8 without control characters or colon, and not with
// # or @ in front (Q10).
func ValidateName(field, name string) error {
	if strings.IndexByte(name, ':') >= 0 {
		return &InvalidError{field, "must not contain a colon"}
	}
	if name != "" && (name[0] == '#' || name[0] == '@') {
		return &InvalidError{field, "must not begin with # or @, which the store's own ids do"}
	}
	return ValidateQueue(field, name)
}

// ValidateQueue checks a queue's name: 1 to 128 bytes of valid UTF-8 without control characters (Q10).
func ValidateQueue(field, queue string) error {
	if queue == "" {
		return &InvalidError{field, "must not be empty"}
	}
	return validateText(field, queue, MaxNameBytes)
}

// ValidateToken checks that a fencing token is 32 lower-case hexadecimal digits, as NewToken makes them.
func ValidateToken(field, token string) error {
	if _, err := hex.DecodeString(token); err != nil || len(token) != 32 || strings.ToLower(token) != token {
		return &InvalidError{field, "must be 32 lower-case hexadecimal digits"}
	}
	return nil
}

// given refuses an interface that holds nothing, or a nil pointer, which fails only where it is used.
func given(field string, v any) error {
	if r := reflect.ValueOf(v); v == nil || r.Kind() == reflect.Pointer && r.IsNil() {
		return &InvalidError{field, "must not be nil"}
	}
	return nil
}

func validateText(field, s string, limit int) error {
	switch {
	case len(s) > limit:
		return &InvalidError{field, fmt.Sprintf("has %d bytes, more than %d", len(s), limit)}
	case !utf8.ValidString(s):
		return &InvalidError{field, "is not valid UTF-8"}
	}
	for _, c := range s {
		if c < 0x20 || c >= 0x7f && c <= 0x9f {
			return &InvalidError{field, fmt.Sprintf("contains the control character %U", c)}
		}
	}
	return nil
}

func validateBytes(field string, b []byte, l Limits) error {
	if limit := l.payload(); len(b) > limit {
		return &InvalidError{field, fmt.Sprintf("has %d bytes, more than the limit of %d", len(b), limit)}
	}
	return nil
}
