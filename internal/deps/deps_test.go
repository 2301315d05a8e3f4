// Package deps_test holds what a program links when it imports core and one driver: that driver's libraries,
// no other's, and nothing made for tests. The linter checks the imports of each file; this checks their sum.
package deps_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	module = "github.com/stintmq/stint"
	root   = "../.."

	telemetry = "go.opentelemetry.io" // only who imports otel links it
)

// libraries says which modules each driver may bring along, by the driver's folder. Those of the others are
// forbidden to it.
var libraries = map[string][]string{
	"memory": {},
	"bun":    {"github.com/uptrace/bun", "modernc.org/sqlite"},
	"pgx":    {"github.com/jackc/pgx/v5"},
	"pq":     {"github.com/lib/pq"},
}

// testLibraries never reach a program. The package testing is among them: it brings its flags along.
var testLibraries = []string{
	"testing",
	"github.com/stretchr/testify",
	"pgregory.net/rapid",
	"go.uber.org/goleak",
}

func TestCoreImportsTheStandardLibraryOnly(t *testing.T) {
	readTree(t)
	for _, dep := range goList(t, "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", module+"/core") {
		if dep != module+"/core" {
			t.Errorf("core links %s", dep)
		}
	}
}

func TestDriversLinkTheirOwnLibrariesOnly(t *testing.T) {
	readTree(t)
	for _, driver := range goFolders(t, filepath.Join(root, "drivers")) {
		t.Run(driver, func(t *testing.T) {
			if _, known := libraries[driver]; !known {
				t.Fatalf("drivers/%s is new: say in libraries which modules it may bring along", driver)
			}
			forbidden := append([]string{module + "/conformance", "github.com/uptrace/bun/driver", module + "/otel", telemetry}, testLibraries...)
			for other, libs := range libraries {
				if other != driver {
					forbidden = append(forbidden, module+"/drivers/"+other)
					forbidden = append(forbidden, libs...)
				}
			}
			for _, dep := range goList(t, "-deps", module+"/core", module+"/drivers/"+driver) {
				if p, bad := within(dep, forbidden); bad {
					t.Errorf("core and drivers/%s link %s, which belongs to %s", driver, dep, p)
				}
			}
		})
	}
}

func TestTelemetryLinksTheAPIOnly(t *testing.T) {
	readTree(t)
	forbidden := append([]string{module + "/drivers", telemetry + "/otel/sdk", telemetry + "/otel/exporters", "google.golang.org"}, testLibraries...)
	for _, dep := range goList(t, "-deps", module+"/otel") {
		if p, bad := within(dep, forbidden); bad {
			t.Errorf("otel links %s, which belongs to %s", dep, p)
		}
	}
}

func TestTheSuiteLinksNoDriver(t *testing.T) {
	readTree(t)
	forbidden := []string{module + "/drivers"}
	for _, libs := range libraries {
		forbidden = append(forbidden, libs...)
	}
	for _, dep := range goList(t, "-deps", module+"/conformance") {
		if p, bad := within(dep, forbidden); bad {
			t.Errorf("conformance links %s, which belongs to %s", dep, p)
		}
	}
}

// within reports whether a package is one of the prefixes or below it, and which.
func within(pkg string, prefixes []string) (string, bool) {
	for _, p := range prefixes {
		if pkg == p || strings.HasPrefix(pkg, p+"/") {
			return p, true
		}
	}
	return "", false
}

// goList runs go list and returns its lines.
func goList(t *testing.T, args ...string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...)
	cmd.Dir = root
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %s: %v", strings.Join(args, " "), err)
	}
	return strings.Fields(string(out))
}

// goFolders lists the direct sub-folders of dir that hold a Go package.
func goFolders(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		name := filepath.Base(filepath.Dir(f))
		if len(names) == 0 || names[len(names)-1] != name {
			names = append(names, name)
		}
	}
	return names
}

// readTree opens every folder of the module: go test caches a result by the files that the test itself opened,
// and would not see what go list reads.
func readTree(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		switch d.Name() {
		case ".git", "bin", "testdata":
			return filepath.SkipDir
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
