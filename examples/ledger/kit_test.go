package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

const (
	childEnv = "LEDGER_TEST_CHILD"
	fullEnv  = "STINT_ROBUST" // =full: the long forms
)

// TestMain makes the test binary the program itself when a test starts it as a child.
func TestMain(m *testing.M) {
	if os.Getenv(childEnv) == "" {
		goleak.VerifyTestMain(m)
		return
	}
	cfg, err := parse(os.Args[1:], os.Stdout)
	cfg.look, cfg.lease = 20*time.Millisecond, 2*time.Second // for parents that wait for a moment, and not for long
	if err == nil {
		err = launch(cfg, os.Stdout)
	}
	os.Exit(exitCode(err, os.Stdout))
}

func size(short, full int) int {
	if os.Getenv(fullEnv) == "full" {
		return full
	}
	return short
}

// process is this binary as the program. It is killed with the test at the latest.
type process struct {
	t   *testing.T
	cmd *exec.Cmd
	out *bufio.Reader
}

func start(t *testing.T, args ...string) *process {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), exe, args...)
	cmd.Env = append(os.Environ(), childEnv+"=1")
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	return &process{t, cmd, bufio.NewReader(stdout)}
}

// wait returns the exit code, -1 for killed, and what the program printed since it was last read.
func (p *process) wait() (code int, output string) {
	p.t.Helper()
	rest, err := io.ReadAll(p.out)
	require.NoError(p.t, err)
	_ = p.cmd.Wait() // the exit code says it
	return p.cmd.ProcessState.ExitCode(), string(rest)
}

// killAfter kills the program a random moment after it has done so many more things.
func (p *process) killAfter(more int) {
	p.t.Helper()
	first := -1
	for {
		line, err := p.out.ReadString('\n')
		if err != nil {
			return // wait tells
		}
		var events, behind, delivered int
		if n, _ := fmt.Sscanf(line, "%d events, balances %d behind, %d webhooks", &events, &behind, &delivered); n < 3 {
			continue
		}
		if first < 0 {
			first = events + delivered
		}
		if events+delivered >= first+more {
			time.AfterFunc(rand.N(20*time.Millisecond), func() { _ = p.cmd.Process.Kill() })
			return
		}
	}
}

// killed kills runs over a file of n transfers, starts them again, and holds the last one to what the file says.
func killed(t *testing.T, store string, n, kills int) {
	t.Helper()
	file := transfersFile(t, n)
	args := []string{"-batch", strconv.Itoa(size(20, 200)), "-store", store, file}
	for i := range kills {
		p := start(t, args...)
		p.killAfter(rand.IntN(2 * n / kills)) // there are about 3.5 n things to do
		code, output := p.wait()
		require.Equal(t, -1, code, "kill %d came after the end: %s", i, output)
	}
	code, output := start(t, args...).wait()
	require.Zero(t, code, output)
	require.Contains(t, output, "all of it is exact")
	require.Contains(t, output, simulated(t, file))
	t.Log(output[strings.Index(output, "read "):])
}

func transfersFile(t *testing.T, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "transfers.csv")
	f, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, generate(f, n))
	require.NoError(t, f.Close())
	return path
}

// simulated is what the program should say of a file: what comes of it without a journal.
func simulated(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	has, seen := make(map[string]int64), make(map[string]bool)
	completed, refused := 0, 0
	for line := range strings.Lines(string(text)) {
		tr, err := read(line)
		if err != nil || seen[tr.ID] {
			continue
		}
		seen[tr.ID] = true
		if tr.From != world && has[tr.From] < tr.Amount {
			refused++
			continue
		}
		completed++
		has[tr.From] -= tr.Amount
		has[tr.To] += tr.Amount
	}
	return fmt.Sprintf("in the bank: %d transfers, %d refused, %d accounts, whose balances make 0\nat the shop: %d distinct webhooks, each counted once, in ",
		completed, refused, len(has), completed)
}
