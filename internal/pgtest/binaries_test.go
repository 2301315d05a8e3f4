package pgtest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFindBinaries(t *testing.T) {
	root := t.TempDir()
	folder := func(path string, names ...string) string {
		dir := filepath.Join(root, path)
		require.NoError(t, os.MkdirAll(dir, 0o755))
		for _, name := range names {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o755))
		}
		return dir
	}
	chosen := folder("chosen", "postgres", "initdb", "psql")
	onPath := folder("path", "postgres", "initdb")
	clientOnly := folder("client", "psql", "pg_config")
	folder("lib/9/bin", "postgres", "initdb")
	newest := folder("lib/18/bin", "postgres", "initdb")
	folder("lib/19/bin", "psql")
	packaged := []string{filepath.Join(root, "none-*"), filepath.Join(root, "lib", "*", "bin")}
	path := clientOnly + string(filepath.ListSeparator) + onPath

	for _, c := range []struct{ chosen, path, want string }{
		{chosen, path, chosen},
		{"", path, onPath},
		{"", clientOnly, newest},
		{"", "", newest},
	} {
		got, err := findBinaries(c.chosen, c.path, packaged)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
	_, err := findBinaries(clientOnly, path, packaged)
	require.Error(t, err, "what was chosen is not replaced by something else")
}
