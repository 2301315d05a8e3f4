package faults

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// message is one of a client's to Postgres; kind 0: the first.
func message(kind byte, words ...string) []byte {
	body := []byte(strings.Join(append(words, ""), "\x00"))
	head := binary.BigEndian.AppendUint32(nil, uint32(4+len(body)))
	if kind != 0 {
		head = append([]byte{kind}, head...)
	}
	return append(head, body...)
}

// TestStatementsAreSeenWhenTheyRun: by their SQL, whether they were prepared or not, and however the bytes come.
func TestStatementsAreSeenWhenTheyRun(t *testing.T) {
	said := []struct {
		bytes []byte
		runs  []string
	}{
		{bytes: message(0, "user", "somebody")},
		{bytes: message('p', "secret")},
		{message(query, "begin"), []string{"begin\x00"}},
		{bytes: message(parse, "first", "select one")},
		{bytes: message(parse, "second", "select two")},
		{message(bind, "", "first"), []string{"select one\x00"}},
		{message(bind, "portal", "second"), []string{"select two\x00"}},
		{append(message(parse, "", "select three"), message(bind, "", "")...), []string{"select three\x00"}},
		{message(bind, "", "first"), []string{"select one\x00"}},
		{bytes: message('E', "")},
	}
	for _, pace := range []int{1, 7, 1000} {
		var s statements
		for _, c := range said {
			var runs []string
			for at := 0; at < len(c.bytes); at += pace {
				for _, text := range s.executed(c.bytes[at:min(at+pace, len(c.bytes))]) {
					runs = append(runs, string(text))
				}
			}
			require.Equal(t, c.runs, runs, "%q, %d bytes at a time", c.bytes, pace)
		}
	}
	var s statements
	s.read(message(0, "user"))
	find := s.read(message(query, "commit"))
	require.True(t, find("commit\x00"))
	require.False(t, find("begin"))
}
