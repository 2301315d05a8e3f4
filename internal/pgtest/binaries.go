package pgtest

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// packaged lists where packages of several versions put the binaries: Debian, Red Hat, Homebrew.
var packaged = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/opt/homebrew/opt/postgresql@*/bin",
	"/usr/local/opt/postgresql@*/bin",
}

// findBinaries returns the folder of the server binaries: the chosen one, else one on PATH, else the newest of the
// packaged ones. Only the binaries themselves count: many machines have psql alone.
func findBinaries(chosen, path string, packaged []string) (string, error) {
	if chosen != "" {
		chosen, err := filepath.Abs(chosen)
		if err == nil && !holdsServer(chosen) {
			err = fmt.Errorf("%s=%s has no postgres and initdb to run", EnvBin, chosen)
		}
		return chosen, err
	}
	for _, dir := range filepath.SplitList(path) {
		if filepath.IsAbs(dir) && holdsServer(dir) {
			return dir, nil
		}
	}
	var found []string
	for _, pattern := range packaged {
		dirs, err := filepath.Glob(pattern)
		if err != nil {
			return "", err
		}
		found = append(found, slices.DeleteFunc(dirs, func(dir string) bool { return !holdsServer(dir) })...)
	}
	if len(found) == 0 {
		return "", fmt.Errorf("install the server (apt-get install postgresql), or set %s to the folder of its binaries",
			EnvBin)
	}
	return slices.MaxFunc(found, func(a, b string) int { return cmp.Compare(version(a), version(b)) }), nil
}

func holdsServer(dir string) bool {
	for _, name := range []string{"postgres", "initdb"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
			return false
		}
	}
	return true
}

var digits = regexp.MustCompile(`\d+`)

// version returns the number in a folder's path, 0 for none: 18 is newer than 9.6.
func version(dir string) int {
	n, err := strconv.Atoi(digits.FindString(dir))
	if err != nil {
		return 0
	}
	return n
}
