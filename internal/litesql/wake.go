package litesql

import (
	"strconv"

	"github.com/stintmq/stint/core"
)

// WakeToken is a tick as core knows it.
func WakeToken(tick int64) core.WakeToken { return core.WakeToken(strconv.FormatInt(tick, 10)) }

// ParseWakeToken reads a tick; false for "" and for what is none.
func ParseWakeToken(t core.WakeToken) (int64, bool) {
	tick, err := strconv.ParseInt(string(t), 10, 64)
	return tick, err == nil && tick >= 0
}
