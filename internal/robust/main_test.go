package robust_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"

	"go.uber.org/goleak"
)

const (
	// childEnv makes the test binary a worker process: its settings, as JSON.
	childEnv = "STINT_ROBUST_CHILD"
	// fullEnv asks for the long forms.
	fullEnv = "STINT_ROBUST"
)

func TestMain(m *testing.M) {
	settings := os.Getenv(childEnv)
	if settings == "" {
		if err := runMore(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		goleak.VerifyTestMain(m)
		return
	}
	var c child
	err := json.Unmarshal([]byte(settings), &c)
	if err == nil {
		err = c.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "worker process:", err)
		os.Exit(1)
	}
}

// size is the short form's number, or the full one's.
func size(short, full int) int {
	if os.Getenv(fullEnv) == "full" {
		return full
	}
	return short
}

// size is the number of the short form for the first driver, for one of the others, or of the full form.
func (d driver) size(first, other, full int) int {
	if d.name == drivers()[0].name {
		return size(first, full)
	}
	return size(other, full)
}

// side is how many of the parallel tests run side by side, unless -parallel says otherwise: most of what they do is
// wait, for leases to run out and connections to be given up.
const side = 5

func runMore() error {
	flag.Parse()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "test.parallel" })
	if said {
		return nil
	}
	return flag.Set("test.parallel", strconv.Itoa(side))
}
