package faults

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// statements reads what a client says to Postgres, so that a rule finds a request by its SQL also where that was sent
// before, to be prepared: such a request has a name for it only. The messages are described at
// https://www.postgresql.org/docs/current/protocol-message-formats.html.
type statements struct {
	begun    bool   // the first message, which has no kind, has been seen
	unread   []byte // the beginning of a message
	prepared map[string][]byte
}

// The kinds of messages that say what a request is.
const (
	query = 'Q' // the text, run at once
	parse = 'P' // a name and a text, kept
	bind  = 'B' // a portal's name and that of a text, run soon
)

// executed returns the texts, each ended by NUL, of the requests that become whole by these bytes. One that only
// prepares is none.
func (s *statements) executed(data []byte) (texts [][]byte) {
	s.unread = append(s.unread, data...)
	for {
		kind, body, ok := s.next()
		if !ok {
			return texts
		}
		switch kind {
		case query:
			texts = append(texts, body)
		case parse:
			name, rest := word(body)
			text, _ := word(rest)
			s.prepared[name] = append([]byte(text), 0)
		case bind:
			_, rest := word(body)
			name, _ := word(rest)
			texts = append(texts, s.prepared[name])
		}
	}
}

// read implements matcher.
func (s *statements) read(data []byte) func(string) bool {
	texts := s.executed(data)
	return func(pattern string) bool {
		return slices.ContainsFunc(texts, func(text []byte) bool { return bytes.Contains(text, []byte(pattern)) })
	}
}

// next takes a message off, if one is there as a whole.
func (s *statements) next() (kind byte, body []byte, ok bool) {
	head := 0
	if s.begun {
		head = 1
	}
	if len(s.unread) < head+4 {
		return 0, nil, false
	}
	if s.begun {
		kind = s.unread[0]
	}
	end := head + int(binary.BigEndian.Uint32(s.unread[head:])) // the length counts itself
	if len(s.unread) < end {
		return 0, nil, false
	}
	body, s.unread = s.unread[head+4:end], s.unread[end:]
	if !s.begun {
		s.begun, s.prepared = true, make(map[string][]byte)
	}
	return kind, body, true
}

// word takes a text that NUL ends off.
func word(b []byte) (text string, rest []byte) {
	before, rest, _ := bytes.Cut(b, []byte{0})
	return string(before), rest
}
