package pgtest

import (
	"bufio"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// keeperScript is the child that owns the cluster. A shell, so that it needs no hook in anybody's TestMain.
//
//go:embed keeper.sh
var keeperScript string

// answerLimit is how long one command may take: recovery on a busy machine, not a normal start.
const answerLimit = 2 * time.Minute

// keeper is the child process that owns a cluster, and the two pipes to it. Not for concurrent use.
type keeper struct {
	cmd     *exec.Cmd
	asks    *os.File // held open by this process alone: its end is the end of the cluster
	answers *os.File
	lines   *bufio.Reader
	dir     string
}

// launch starts a keeper for a cluster of the binaries in bin. It starts no goroutine.
func launch(bin string) (*keeper, error) {
	attr, err := childAttributes()
	if err != nil {
		return nil, err
	}
	stdin, asks, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	answers, stdout, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, stdin.Close(), asks.Close())
	}
	// No Stderr: a child that holds the test's own output would keep go test waiting.
	cmd := exec.Command("sh", "-c", keeperScript, "keeper", bin, tempDir())
	cmd.Stdin, cmd.Stdout = stdin, stdout
	cmd.Dir = "/"
	cmd.SysProcAttr = attr
	// PGPORT, PGOPTIONS and the rest of the caller's environment mean other databases.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
	err = cmd.Start()
	err = errors.Join(err, stdin.Close(), stdout.Close())
	k := &keeper{cmd: cmd, asks: asks, answers: answers, lines: bufio.NewReader(answers)}
	if err == nil {
		k.dir, err = k.answer()
	}
	if err == nil && !filepath.IsAbs(k.dir) {
		err = errors.New(k.dir) // what mktemp said
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the keeper: %w", err), k.end())
	}
	return k, nil
}

// ask has the keeper do one thing and waits until it is done. The error ends with what the log says last.
func (k *keeper) ask(command, argument string) error {
	if _, err := fmt.Fprintf(k.asks, "%s %s\n", command, argument); err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	answer, err := k.answer()
	if err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	if answer != "ok" {
		return fmt.Errorf("%s failed:\n%s", command, k.logTail(10))
	}
	return nil
}

func (k *keeper) answer() (string, error) {
	if err := k.answers.SetReadDeadline(time.Now().Add(answerLimit)); err != nil {
		return "", err
	}
	line, err := k.lines.ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}

// end stops the server and removes the folder; both are done when it returns.
func (k *keeper) end() error {
	err := errors.Join(k.asks.Close(), k.answers.Close())
	if k.cmd.Process != nil {
		err = errors.Join(err, k.cmd.Wait())
	}
	return err
}

// logTail returns the last lines of the server's log, or why there are none.
func (k *keeper) logTail(lines int) string {
	text, err := os.ReadFile(filepath.Join(k.dir, "log"))
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// tempDir is where clusters live. The server's user must be able to reach it, which root's own folders rule out, and
// the path of a socket below it has room for about 100 bytes.
func tempDir() string {
	if dir := os.TempDir(); os.Getuid() != 0 && len(dir) <= 60 {
		return dir
	}
	return "/tmp"
}
