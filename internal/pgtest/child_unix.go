//go:build unix

package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// childAttributes puts the keeper into a session of its own, where neither an interrupt at the terminal nor a kill of
// the test's process group reaches it before it has cleaned up. Root runs it as another user.
func childAttributes() (*syscall.SysProcAttr, error) {
	attr := &syscall.SysProcAttr{Setsid: true}
	if os.Getuid() != 0 {
		return attr, nil
	}
	var missing error
	for _, name := range []string{"postgres", "nobody"} {
		account, err := user.Lookup(name)
		if err != nil {
			missing = errors.Join(missing, err)
			continue
		}
		uid, uidErr := strconv.ParseUint(account.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(account.Gid, 10, 32)
		if err := errors.Join(uidErr, gidErr); err != nil {
			return nil, fmt.Errorf("account %s: %w", name, err)
		}
		attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		return attr, nil
	}
	return nil, fmt.Errorf("the server refuses to run as root, and no other account was found: %w", missing)
}
