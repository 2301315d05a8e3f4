package robust_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// skewEnv says by how much the clock of a program that skewed built is off: "ahead" or "behind", two hours.
const skewEnv = "STINT_ROBUST_SKEW"

// skewSource is added to package time.
const skewSource = `package time

import "syscall"

var skewForTests = func() int64 {
	switch v, _ := syscall.Getenv("` + skewEnv + `"); v {
	case "ahead":
		return 7200
	case "behind":
		return -7200
	}
	return 0
}()
`

// skewed builds this test binary with a package time whose wall clock can be off. A process can't change its clock
// otherwise, without privileges: Go reads it from the kernel, past any library that could be put in between. The
// standard library is built anew for it, which takes a while the first time.
func skewed(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	require.NoError(t, err)
	source := filepath.Join(strings.TrimSpace(string(out)), "src", "time")
	text, err := os.ReadFile(filepath.Join(source, "time.go"))
	require.NoError(t, err)
	const reads = "\tsec, nsec, mono := runtimeNow()\n\tif mono == 0 {"
	require.Equal(t, 1, strings.Count(string(text), reads), "time.Now is not what it was")
	patched := strings.Replace(string(text), reads, strings.Replace(reads, "\n", "\n\tsec += skewForTests\n", 1), 1)

	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(source, "time.go"):           write("time.go", patched),
		filepath.Join(source, "skew_for_tests.go"): write("skew.go", skewSource),
	}})
	require.NoError(t, err)
	exe := filepath.Join(dir, "skewed.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay", write("overlay.json", string(overlay)), "-o", exe, ".")
	message, err := build.CombinedOutput()
	require.NoError(t, err, "%s", message)
	return exe
}

// TestClientClocks: what a client's clock says does not matter. The long form has worker processes, one of them two
// hours ahead, another two behind: jobs with a delay start when it is over by the database's clock, leases last as
// long as they should, and nothing runs twice.
func TestClientClocks(t *testing.T) {
	t.Parallel()
	anyDriver(t, func(t *testing.T, d driver) {
		e := sharedEnv(t, d)
		for name, off := range map[string]time.Duration{"2000": 0, "2060": 60 * 365 * 24 * time.Hour} {
			t.Run("stands still in "+name, func(t *testing.T) { standsStill(e.emptied(t), off) })
		}
		if size(0, 1) == 1 {
			t.Run("two hours off", func(t *testing.T) { disagree(e.emptied(t), skewed(t)) })
		}
	})
}

func disagree(e *env, exe string) {
	t := e.t
	s := e.open(e.at)
	var crew []*process
	for _, way := range []string{"ahead", "behind"} {
		crew = append(crew, e.startAs(exe, e.worker(way, func(c *child) { c.Poll = time.Hour }), skewEnv+"="+way))
	}
	for i, p := range crew {
		line := p.text.String() // its first log line has its clock
		at, err := time.Parse(time.RFC3339, strings.TrimPrefix(strings.Fields(line)[0], "time="))
		require.NoError(t, err)
		want := []time.Duration{2 * time.Hour, -2 * time.Hour}[i]
		require.InDelta(t, want, time.Until(at), float64(time.Minute), "the clock is not off")
	}
	crewJobs := size(300, 3000)
	reqs := requests(t, "q", 0, crewJobs)
	for i := range reqs {
		switch i % 3 {
		case 0:
			reqs[i].Delay = 700 * time.Millisecond
		case 1:
			reqs[i].RunAt = time.Now().Add(time.Second)
		}
	}
	// Longer than a lease: heartbeats count.
	reqs[2].Payload = lasting(2, 2*lease)
	reqs[5].Payload = lasting(5, 2*lease)
	enqueue(t, s, reqs)
	e.finish(crewJobs, 30*time.Second)
	for _, p := range crew {
		p.stop()
	}
	require.Equal(t, counted{Jobs: crewJobs, Runs: crewJobs}, e.verify(s, crewJobs))
	require.Zero(t, e.number("select count(*) from "+e.notes+".runs r join "+e.schema+".jobs j on j.seq = r.ref where r.started < j.run_at"),
		"a job started before its time")
	require.Zero(t, e.number("select count(*) from "+e.notes+".runs r join "+e.schema+".jobs j on j.seq = r.ref where r.started > j.run_at + interval '5 s'"),
		"a job started long after its time")
}
