package litesql

import (
	"encoding/base64"
	"fmt"

	"github.com/stintmq/stint/core"
)

// position is a job's place in an order: the time that it is ordered by, then its number.
type position struct{ at, seq int64 }

// before reports whether p comes first in an order.
func (p position) before(o position, ascending bool) bool {
	if ascending {
		p, o = o, p
	}
	return p.at > o.at || p.at == o.at && p.seq > o.seq
}

// start is before every position of an order.
func start(ascending bool) position {
	if ascending {
		return position{-never, 0}
	}
	return position{never, never}
}

// The cursor's text: version, order, direction, the last position of its page.
const cursorFormat = "1 %s %t %d %d"

func cursorText(q core.Query, p position) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, cursorFormat, order(q), q.Ascending, p.at, p.seq))
}

// readCursor returns where a page begins: behind that position.
func readCursor(q core.Query) (position, error) {
	if q.Cursor == "" {
		return start(q.Ascending), nil
	}
	bad := &core.InvalidError{Field: "Cursor", Reason: "is not one of this query's"}
	text, err := base64.RawURLEncoding.DecodeString(q.Cursor)
	if err != nil {
		return position{}, bad
	}
	var by string
	var ascending bool
	var p position
	if _, err := fmt.Sscanf(string(text), cursorFormat, &by, &ascending, &p.at, &p.seq); err != nil {
		return position{}, bad
	}
	if by != string(order(q)) || ascending != q.Ascending || cursorText(q, p) != q.Cursor {
		return position{}, bad
	}
	return p, nil
}

func order(q core.Query) core.OrderBy {
	if q.OrderBy == "" {
		return core.OrderEnqueued
	}
	return q.OrderBy
}
