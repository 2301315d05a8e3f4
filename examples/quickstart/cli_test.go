package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestExitCodes(t *testing.T) {
	empty := folder(t)
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"nothing to do", []string{"-store", "memory", empty}, 0, "no files in"},
		{"unknown store", []string{"-store", "mysql:x", empty}, exitUsage, "unknown -store: use memory, sqlite:PATH or postgres:DSN"},
		{"store without DSN", []string{"-store", "postgres:", empty}, exitUsage, "unknown -store"},
		{"two schemas", []string{"-store", "postgres:search_path=a,b", empty}, exitUsage, "one schema"},
		{"store without path", []string{"-store", "sqlite:", empty}, exitUsage, "unknown -store"},
		{"unknown flag", []string{"-frsh", empty}, exitUsage, "-frsh (-h lists the flags)"},
		{"two folders", []string{empty, empty}, exitUsage, "one folder at most"},
		{"flag after the folder", []string{empty, "-fresh"}, exitUsage, "flags before it"},
		{"no takers", []string{"-takers", "0", empty}, exitUsage, "at least 1"},
		{"no such folder", []string{"-store", "memory", filepath.Join(empty, "nowhere")}, exitFailed, "no such file"},
		{"a file", []string{"-store", "memory", "cli_test.go"}, exitFailed, "is no folder"},
		{"no place for the file", []string{"-store", "sqlite:" + filepath.Join(empty, "no", "q.db"), empty}, exitFailed, "folder"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, output := runChild(t, c.args...)
			require.Equal(t, c.code, code, output)
			require.Contains(t, output, c.says)
		})
	}
}

func TestDefaultFolderIsGosSource(t *testing.T) {
	cfg, err := parse(nil, t.Output())
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(cfg.folder, "fmt", "print.go"))
	require.Equal(t, "sqlite:stint-quickstart.db", cfg.store)
	require.Positive(t, cfg.takers)
}

func TestStatusIsRedrawnOnATerminalOnly(t *testing.T) {
	var text strings.Builder
	out := &screen{w: &text, live: true}
	out.status("%d of 12", 10)
	out.status("%d of 12", 9)
	out.printf("stays")
	out.status("last")
	out.end()
	require.Equal(t, "\r10 of 12\r9 of 12 \rstays  \n\rlast\n", text.String())

	text.Reset()
	out = &screen{w: &text, every: time.Hour}
	out.status("first")
	out.status("too soon")
	out.printf("stays")
	out.end()
	require.Equal(t, "first\nstays\n", text.String())
	out.status("too soon")
	out.status("the last is always shown")
	out.end()
	out.end()
	require.Equal(t, "first\nstays\nthe last is always shown\n", text.String())
}
