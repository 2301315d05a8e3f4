package main

import (
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const root = "../.." // of the repository

var goBlock = regexp.MustCompile("(?ms)^```go\n// file: (\\S+)\n(.*?)^```$")

// Code in the guide is code that runs: each block that names a file stands in it word for word.
func TestTheGuideQuotesTheCode(t *testing.T) {
	const guide = "docs/writing-a-driver.md"
	text := read(t, guide)
	blocks := goBlock.FindAllStringSubmatch(text, -1)
	if named := strings.Count(text, "\n// file: "); len(blocks) == 0 || len(blocks) != named {
		t.Fatalf("%d blocks of %s name a file, %d were understood", named, guide, len(blocks))
	}
	for _, b := range blocks {
		if path, code := b[1], b[2]; !strings.Contains(read(t, path), code) {
			t.Errorf("%s quotes what is not in %s:\n%s", guide, path, code)
		}
	}
}

// The failure that the guide reads with a newcomer is the one that the skeleton gets.
func TestTheGuideQuotesTheSkeletonsFailure(t *testing.T) {
	const file = "conformance/enqueue.go"
	read(t, file) // go test would not rerun this for what another go test reads
	read(t, "examples/customdriver/skeleton/skeleton.go")
	cmd := exec.CommandContext(t.Context(), "go", "test", "-tags", "skeleton", "./skeleton",
		"-run", "TestConformance/^enqueue$/^claimable$")
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatal("the skeleton passed")
	}
	_, failure, _ := strings.Cut(string(out), "claimable (")
	_, failure, found := strings.Cut(failure, "\n") // the rest of its line
	if !found {
		t.Fatalf("%v\n%s", err, out)
	}
	lines := strings.SplitN(failure, "\n", 3)
	if want := strings.Join(lines[:2], "\n"); !strings.Contains(read(t, "docs/writing-a-driver.md"), want) {
		t.Errorf("the guide does not show\n%s", want)
	}
}

// Links to files lead somewhere.
func TestTheGuidesLinksExist(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#]+)[^)]*\)`)
	for _, l := range link.FindAllStringSubmatch(read(t, "docs/writing-a-driver.md"), -1) {
		if _, err := os.Stat(filepath.Join(root, "docs", l[1])); err != nil && !strings.Contains(l[1], "://") {
			t.Error(err)
		}
	}
}

// A driver needs core and the standard library, as its author would find out on a machine that has nothing else.
func TestTheDriverImportsCoreAndTheStandardLibraryOnly(t *testing.T) {
	files, err := filepath.Glob("[fs]*/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	for _, path := range files {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range f.Imports {
			pkg, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			first, _, _ := strings.Cut(pkg, "/")
			test := strings.HasSuffix(path, "_test.go") && pkg == "github.com/stintmq/stint/conformance"
			if strings.Contains(first, ".") && pkg != "github.com/stintmq/stint/core" && !test {
				t.Errorf("%s imports %s", path, pkg)
			}
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
