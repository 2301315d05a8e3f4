package filestore

import "fmt"

// LockedError: another handle has the queue open, in this process or in another one.
type LockedError struct{ Path string }

func (e *LockedError) Error() string {
	return fmt.Sprintf("filestore: in use by another handle or process, which holds %s", e.Path)
}
