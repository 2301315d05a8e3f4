package pgtest

import (
	"fmt"
	"io"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// childDoes makes the test binary another process, which does one of these and then waits to be killed.
const childDoes = "PGTEST_TEST_CHILD"

var childWork = map[string]func() error{
	"start":  startAndSay,
	"launch": launchAndSay,
}

func TestMain(m *testing.M) {
	if work := childWork[os.Getenv(childDoes)]; work != nil {
		if err := work(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// startAndSay starts a cluster as a test does that shares one.
func startAndSay() error {
	s, err := shared()
	if err == nil {
		fmt.Println(s.keeper.dir, s.addr(), s.DSN())
	}
	return err
}

// launchAndSay has asked for initdb, which takes most of a second, when it says where.
func launchAndSay() error {
	bin, err := findBinaries(os.Getenv(EnvBin), os.Getenv("PATH"), packaged)
	if err != nil {
		return err
	}
	k, err := launch(bin)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(k.asks, "init secret")
	fmt.Println(k.dir)
	return err
}
