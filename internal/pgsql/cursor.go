package pgsql

import (
	"encoding/base64"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/stintmq/stint/core"
)

// directed puts a direction into a statement.
func directed(text string, ascending bool) string {
	than, dir := "<", "desc"
	if ascending {
		than, dir = ">", "asc"
	}
	return strings.NewReplacer("%than%", than, "%dir%", dir).Replace(text)
}

// start is before every position of an order.
func start(ascending bool) position {
	if ascending {
		return position{time.Time{}, 0}
	}
	return position{time.Date(99999, 1, 1, 0, 0, 0, 0, time.UTC), math.MaxInt64}
}

// The cursor's text: version, order, direction, the last position of its page.
const cursorFormat = "1 %s %t %d %d"

func cursorText(q core.Query, p position) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, cursorFormat, order(q), q.Ascending, p.at.UnixMicro(), p.seq))
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
	var at int64
	if _, err := fmt.Sscanf(string(text), cursorFormat, &by, &ascending, &at, &p.seq); err != nil {
		return position{}, bad
	}
	p.at = time.UnixMicro(at).UTC()
	if by != string(order(q)) || ascending != q.Ascending || cursorText(q, p) != q.Cursor ||
		p.at.Year() < 1 || p.at.Year() > 99999 {
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
