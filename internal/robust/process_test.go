package robust_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
)

// process is a worker process.
type process struct {
	e    *env
	cmd  *exec.Cmd
	end  io.Closer // of its standard input: the word to stop
	id   string
	text *logText
	over bool
}

// lease is the workers' lease where a test has no reason for another.
const lease = 1500 * time.Millisecond

// worker is a worker process's settings: what is zero gets a value that fits most tests.
func (e *env) worker(id string, change ...func(*child)) child {
	c := child{
		Driver: e.d.name, At: e.at, Schema: e.schema, Notes: e.at, Table: e.runsTable(), ID: id, Queues: []string{"q"},
		Takers: 20, Lease: lease, Poll: time.Second, Work: 20 * time.Millisecond,
	}
	for _, f := range change {
		f(&c)
	}
	return c
}

// start starts a worker process and returns once it works. It ends with the test at the latest.
func (e *env) start(c child) *process {
	e.t.Helper()
	exe, err := os.Executable()
	require.NoError(e.t, err)
	return e.startAs(exe, c)
}

func (e *env) startAs(exe string, c child, environment ...string) *process {
	e.t.Helper()
	settings, err := json.Marshal(c)
	require.NoError(e.t, err)
	cmd := exec.CommandContext(e.t.Context(), exe)
	// With the race detector a process would linger for a second at its end.
	race := "GORACE=" + os.Getenv("GORACE") + " atexit_sleep_ms=0"
	cmd.Env = append(append(os.Environ(), childEnv+"="+string(settings), race), environment...)
	p := &process{e: e, cmd: cmd, id: c.ID, text: &logText{}}
	cmd.Stderr = p.text
	p.end, err = cmd.StdinPipe()
	require.NoError(e.t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(e.t, err)
	require.NoError(e.t, cmd.Start())
	e.t.Cleanup(p.kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(e.t, err, "%s: %s", c.ID, p.text)
	require.Equal(e.t, "working\n", line)
	return p
}

// kill ends the process as kill -9 does. It may have ended.
func (p *process) kill() {
	if p.over {
		return
	}
	p.over = true
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait() // killed
	if p.e.t.Failed() {
		p.e.t.Logf("%s said last:\n%s", p.id, p.text.tail(15))
	}
}

// stop has the process end in order: it must have settled everything.
func (p *process) stop() {
	p.e.t.Helper()
	p.over = true
	require.NoError(p.e.t, p.end.Close())
	require.NoError(p.e.t, p.cmd.Wait(), "%s: %s", p.id, p.text)
}

// logText is what a process or a worker logs.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logText) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// tail are the last lines.
func (l *logText) tail(n int) string {
	lines := strings.Split(strings.TrimSpace(l.String()), "\n")
	if len(lines) > n {
		return fmt.Sprintf("(%d lines before)\n%s", len(lines)-n, strings.Join(lines[len(lines)-n:], "\n"))
	}
	return strings.Join(lines, "\n")
}

// troubles are the log's lines about store calls that failed.
func (l *logText) troubles() []string {
	var found []string
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, "failed") || strings.Contains(line, "level=ERROR") || strings.Contains(line, "doubtful") {
			found = append(found, line)
		}
	}
	return found
}
