package robust_test

import (
	"encoding/json"
	"fmt"
	"os"
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
