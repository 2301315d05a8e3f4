//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package filestore

import (
	"os"

	"github.com/stintmq/stint/core"
)

// lockFile refuses: without a lock two processes could overwrite each other's jobs.
func lockFile(string) (*os.File, error) {
	return nil, &core.UnsupportedError{Op: "Open", Reason: "no flock on this system"}
}
