package pgstd

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestArraysAsText: what Postgres reads, and what it writes.
func TestArraysAsText(t *testing.T) {
	for want, v := range map[string]any{
		`{}`:                             []string{},
		`{"","a b","NULL","{,}","\"\\"}`: []string{"", "a b", "NULL", "{,}", `"\`},
		`{NULL,"\\x","\\x00ff"}`:         [][]byte{nil, {}, {0, 255}},
		`{-32768,32767}`:                 []int16{-32768, 32767},
		`{1}`:                            []int32{1},
		`{9223372036854775807}`:          []int64{1<<63 - 1},
		`{true,false}`:                   []bool{true, false},
		`{"2026-11-30 12:00:00.000001Z","0001-01-01 00:00:00Z","0001-12-31 00:00:00Z BC","292000-02-29 00:00:00Z"}`: []time.Time{
			time.Date(2026, 11, 30, 13, 0, 0, 1000, time.FixedZone("", 3600)), {}, time.Date(0, 12, 31, 0, 0, 0, 0, time.UTC),
			time.Date(292000, 2, 29, 0, 0, 0, 0, time.UTC)},
	} {
		got, ok := argument(v)
		require.True(t, ok)
		require.Equal(t, want, got)
	}
	zero, ok := argument(time.Time{})
	require.True(t, ok)
	require.Equal(t, "0001-01-01 00:00:00Z", zero)
	none, ok := argument([]int64(nil))
	require.True(t, ok)
	require.Nil(t, none)
	for _, v := range []any{[]byte("a"), "a", int64(1), nil} {
		_, ok := argument(v)
		require.False(t, ok, v)
	}
	read := func(into, src any) error {
		s, ok := target(into)
		require.True(t, ok)
		return s.(interface{ Scan(any) error }).Scan(src)
	}
	var texts []string
	want := []string{"", "a b", "NULL", "{,}", `"\`, "plain"}
	require.NoError(t, read(&texts, `{"","a b","NULL","{,}","\"\\",plain}`))
	require.Equal(t, want, texts)
	require.NoError(t, read(&texts, []byte(`{}`)))
	require.Empty(t, texts)
	require.NoError(t, read(&texts, nil))
	require.Nil(t, texts)
	var small []int16
	require.NoError(t, read(&small, []byte(`{-32768,7}`)))
	require.Equal(t, []int16{-32768, 7}, small)
	var wide []int64
	require.NoError(t, read(&wide, `{9223372036854775807}`))
	require.Equal(t, []int64{1<<63 - 1}, wide)
	for _, bad := range []any{``, `{`, `1`, `{x}`, `{70000}`, `{"1}`, `{1\}`, 1} {
		require.Error(t, read(&small, bad), bad)
	}
}
