package filestore

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/stintmq/stint/core"
)

const format = 1 // of the file

// DamagedError: the file is there but is not a whole queue of this format. Nothing was changed.
type DamagedError struct {
	Path string
	Err  error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("filestore: %s is damaged: %v", e.Path, e.Err)
}
func (e *DamagedError) Unwrap() error { return e.Err }

// file is the queue on disk: JSON, a line for the header and one for each job.
type file struct {
	path string
	sync bool
}

// load reads the file; none is a queue without jobs.
func (f *file) load() (*state, error) {
	data, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return newState(), nil
	}
	if err != nil {
		return nil, unavailable(err)
	}
	st, err := decode(data)
	if err != nil {
		return nil, &DamagedError{Path: f.path, Err: err}
	}
	return st, nil
}

// replace writes the file anew in one step: a crash leaves the old one or the new one. An error that wraps
// ErrUnavailable means the old one, and ErrUnknown the new one unless the power fails now.
func (f *file) replace(lines [][]byte) error {
	temp := f.path + ".tmp" // one name is enough: the lock is ours
	err := f.write(temp, lines)
	if err == nil {
		err = os.Rename(temp, f.path)
	}
	if err != nil {
		return unavailable(err)
	}
	if err := f.syncDir(); err != nil {
		return fmt.Errorf("filestore: %w: %w", core.ErrUnknown, err)
	}
	return nil
}

func (f *file) write(path string, lines [][]byte) error {
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriterSize(out, 64<<10)
	for _, line := range lines {
		_, _ = buffered.Write(line) // Flush answers for all
	}
	err = buffered.Flush()
	if err == nil && f.sync {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}

// syncDir makes the rename itself durable.
func (f *file) syncDir() error {
	if !f.sync {
		return nil
	}
	dir, err := os.Open(filepath.Dir(f.path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
