package journal

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/stintmq/stint/core"
)

// encode checks a draft and returns its payload.
func (j *Journal[Tx]) encode(key EntityKey, d Draft) ([]byte, error) {
	field := "Payload of " + d.def.name
	data, err := d.data(key)
	switch {
	case err != nil:
		return nil, &core.InvalidError{Field: field, Reason: fmt.Sprintf("cannot be encoded: %v", err)}
	case !json.Valid(data):
		return nil, &core.InvalidError{Field: field, Reason: "is not JSON"}
	case len(data) > j.opts.Limits.Payload:
		return nil, &core.InvalidError{Field: field, Reason: fmt.Sprintf("has %d bytes, more than the limit of %d", len(data), j.opts.Limits.Payload)}
	}
	return data, validMeta(d.meta)
}

// validMeta keeps metadata to core's rules (Q13).
func validMeta(meta map[string]string) error {
	size := 0
	for k, v := range meta {
		if k == "" {
			return &core.InvalidError{Field: "Meta", Reason: "has an empty key"}
		}
		if err := validText("Meta", k); err != nil {
			return err
		}
		if !utf8.ValidString(v) || strings.Contains(v, "\x00") {
			return &core.InvalidError{Field: "Meta", Reason: fmt.Sprintf("value of %q is not valid UTF-8 without NUL", k)}
		}
		if size += len(k) + len(v); size > core.MaxMetadataBytes {
			return &core.InvalidError{Field: "Meta", Reason: fmt.Sprintf("has more than %d bytes", core.MaxMetadataBytes)}
		}
	}
	return nil
}
