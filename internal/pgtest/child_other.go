//go:build !unix

package pgtest

import (
	"errors"
	"syscall"
)

func childAttributes() (*syscall.SysProcAttr, error) {
	return nil, errors.New("throw-away clusters need Unix; set " + EnvDSN + " to a database's connection string")
}
