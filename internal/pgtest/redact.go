package pgtest

import (
	"net/url"
	"strings"
)

// redacted stands for what a message must not show.
const redacted = "xxxxx"

// Redact returns a connection string, a URL or libpq's key=value words, fit for a message: without its passwords.
// Where it can't tell what is secret it hides too much rather than too little, and text that is neither form is
// hidden altogether.
func Redact(dsn string) string {
	scheme, rest, isURL := strings.Cut(dsn, "://")
	switch {
	case isURL && (scheme == "postgres" || scheme == "postgresql"):
		return scheme + "://" + redactQuery(redactUser(rest))
	case strings.Contains(dsn, "="):
		return redactWords(dsn)
	case strings.TrimSpace(dsn) == "":
		return ""
	}
	return redacted
}

// redactUser hides what stands between the user's name and the host. Passwords that should have been escaped contain
// anything, so it reaches up to the last @.
func redactUser(s string) string {
	at := strings.LastIndexByte(s, '@')
	if at < 0 {
		return s
	}
	user, _, hasPassword := strings.Cut(s[:at], ":")
	if !hasPassword {
		return s
	}
	return user + ":" + redacted + s[at:]
}

// redactQuery hides the values of a URL's secret parameters.
func redactQuery(s string) string {
	before, query, has := strings.Cut(s, "?")
	if !has {
		return s
	}
	params := strings.Split(query, "&")
	for i, param := range params {
		name, _, hasValue := strings.Cut(param, "=")
		plain, err := url.QueryUnescape(name)
		if hasValue && (err != nil || secret(plain)) {
			params[i] = name + "=" + redacted
		}
	}
	return before + "?" + strings.Join(params, "&")
}

// redactWords hides the values of secret words, in which quotes and backslashes protect spaces. A word without a value
// and all after it is not what libpq takes: perhaps the rest of a password that should have been quoted.
func redactWords(s string) string {
	var words []string
	for s = strings.TrimLeft(s, spaces); s != ""; s = strings.TrimLeft(s, spaces) {
		name, rest, hasValue := strings.Cut(s, "=")
		name = strings.TrimRight(name, spaces)
		if !hasValue || strings.ContainsAny(name, spaces) {
			return strings.Join(append(words, redacted), " ")
		}
		rest = strings.TrimLeft(rest, spaces)
		end := wordEnd(rest)
		value := rest[:end]
		if secret(name) {
			value = redacted
		}
		words = append(words, name+"="+value)
		s = rest[end:]
	}
	return strings.Join(words, " ")
}

const spaces = " \t\r\n\f\v"

// wordEnd returns the length of the value that s begins with.
func wordEnd(s string) int {
	quoted := strings.HasPrefix(s, "'")
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\':
			i++
		case quoted && i > 0 && s[i] == '\'':
			return i + 1
		case !quoted && strings.IndexByte(spaces, s[i]) >= 0:
			return i
		}
	}
	return len(s)
}

// secret reports whether a parameter's value stays hidden: password, sslpassword, oauth_client_secret, scram_client_key
// and whatever else is named like them.
func secret(name string) bool {
	name = strings.ToLower(name)
	for _, part := range []string{"pass", "secret", "token", "scram"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}
