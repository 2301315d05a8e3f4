package pgstd

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/stdsql"
)

// Unconnected is the error for a connection that could not be had. lib/pq and pgx read the connection string when they connect,
// and an error of lib/pq about that shows it, the password included: what they say is left out.
func Unconnected(err error) error {
	if misread(err) {
		return &stdsql.NotSentError{Err: &core.InvalidError{Field: "db", Reason: "has a connection string that can't be read " +
			"(not shown, it may hold a password; in a URL, special characters of a password must be percent-encoded)"}}
	}
	return &stdsql.NotSentError{Err: fmt.Errorf("%w: no connection: %w", core.ErrUnavailable, err)}
}

// misread reports whether an error is about the text of a connection string. Such errors come without a type of their own.
func misread(err error) bool {
	var asURL *url.Error
	var asNumber *strconv.NumError
	if errors.As(err, &asURL) || errors.As(err, &asNumber) {
		return true
	}
	for _, said := range []string{"in connection info string", "in connection string", "missing character after backslash",
		"cannot parse `"} {
		if strings.Contains(err.Error(), said) {
			return true
		}
	}
	return false
}
