//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package filestore

import (
	"errors"
	"os"
	"syscall"
)

// lockFile takes an exclusive lock that ends with the file's Close, or with the process. The file stays: whoever
// removed it could let two others each hold a lock, on the old file and on a new one.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, unavailable(err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return nil, errors.Join(&LockedError{Path: path}, f.Close())
	case err != nil:
		return nil, errors.Join(unavailable(err), f.Close())
	}
	return f, nil
}
