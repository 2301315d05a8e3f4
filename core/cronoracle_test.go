package core_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	robfig "github.com/robfig/cron/v3"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/stintmq/stint/core"
)

// plainCron is cron as it is told: sets of values, and a look at every second. It knows nothing of the code that it
// checks.
type plainCron struct {
	fields  [6]map[int]bool
	stars   [6]bool
	zone    *time.Location
	seconds bool // else only whole minutes
}

var plainBounds = [6][2]int{{0, 59}, {0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 6}}

// drawCron makes an expression and what it means, together.
func drawCron(t *rapid.T, zone string, stepsFromDays bool) (string, *plainCron) {
	p := &plainCron{seconds: rapid.IntRange(0, 4).Draw(t, "seconds") == 0}
	var err error
	p.zone, err = time.LoadLocation(zone)
	require.NoError(t, err)
	var words []string
	for i, b := range plainBounds {
		if i == 0 && !p.seconds {
			p.fields[0] = map[int]bool{0: true}
			continue
		}
		var word string
		word, p.stars[i], p.fields[i] = drawField(t, b[0], b[1], stepsFromDays || i != 3 && i != 5)
		words = append(words, word)
	}
	return strings.Join(words, " "), p
}

func drawField(t *rapid.T, low, high int, stepFromStar bool) (word string, star bool, set map[int]bool) {
	set = make(map[int]bool)
	add := func(from, to, step int) {
		for v := from; v <= to; v += step {
			set[v] = true
		}
	}
	if rapid.IntRange(0, 9).Draw(t, "star") < 5 {
		step := 1
		if word = "*"; stepFromStar && rapid.Bool().Draw(t, "stepped") {
			step = rapid.IntRange(1, high-low+1).Draw(t, "step")
			word += "/" + strconv.Itoa(step)
		}
		add(low, high, step)
		return word, true, set
	}
	var parts []string
	for range rapid.IntRange(1, 3).Draw(t, "parts") {
		from := rapid.IntRange(low, high).Draw(t, "from")
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			to := rapid.IntRange(from, high).Draw(t, "to")
			add(from, to, 1)
			parts = append(parts, fmt.Sprintf("%d-%d", from, to))
		case 1:
			to, step := rapid.IntRange(from, high).Draw(t, "to"), rapid.IntRange(1, high-low+1).Draw(t, "step")
			add(from, to, step)
			parts = append(parts, fmt.Sprintf("%d-%d/%d", from, to, step))
		default:
			add(from, from, 1)
			parts = append(parts, strconv.Itoa(from))
		}
	}
	return strings.Join(parts, ","), false, set
}

func (p *plainCron) day(l time.Time) bool {
	day, week := p.fields[3][l.Day()], p.fields[5][int(l.Weekday())]
	if !p.stars[3] && !p.stars[5] {
		return p.fields[4][int(l.Month())] && (day || week)
	}
	return p.fields[4][int(l.Month())] && day && week
}

func (p *plainCron) matches(l time.Time) bool {
	return p.fields[0][l.Second()] && p.fields[1][l.Minute()] && p.fields[2][l.Hour()] && p.day(l)
}

// face is what a clock on a wall shows, as if it were UTC.
func (p *plainCron) face(u time.Time) time.Time {
	l := u.In(p.zone)
	return time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), l.Second(), 0, time.UTC)
}

// fires says of one instant whether it is a slot (Q26).
func (p *plainCron) fires(u time.Time) bool {
	face, everyHour := p.face(u), len(p.fields[2]) == 24
	if p.matches(face) {
		first := true
		for back := 30 * time.Minute; back <= 3*time.Hour; back += 30 * time.Minute {
			first = first && !p.face(u.Add(-back)).Equal(face)
		}
		if first || everyHour {
			return true
		}
	}
	missing := p.face(u.Add(-time.Second)).Add(time.Second)
	if everyHour && face.Sub(missing)%time.Hour == 0 {
		return false
	}
	for ; missing.Before(face); missing = missing.Add(time.Second) {
		if p.matches(missing) {
			return true
		}
	}
	return false
}

// next looks at every instant until limit; zero: none.
func (p *plainCron) next(t, limit time.Time) time.Time {
	step := time.Minute // zones have kept to these for long, and so will they
	if p.seconds {
		step = time.Second
	}
	for u := t.Truncate(step).Add(step); u.Before(limit); {
		const day = 24 * time.Hour
		if l := p.face(u); !p.day(l.Add(-day)) && !p.day(l) && !p.day(l.Add(day)) && !p.day(l.Add(2*day)) {
			u = u.Add(day)
			continue
		}
		if p.fires(u) {
			return u
		}
		u = u.Add(step)
	}
	return time.Time{}
}

var oracleZones = []string{
	"UTC", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Africa/Casablanca", "Africa/Cairo", "Asia/Beirut",
	"America/Santiago", "Asia/Kathmandu", "Antarctica/Troll", "Atlantic/Azores", "Pacific/Chatham",
}

// TestCronAgainstEveryInstant: no slot is missing and none too many, for any expression in any zone, most of all where
// its clocks are changed (Q26).
func TestCronAgainstEveryInstant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone := rapid.SampledFrom(oracleZones).Draw(t, "zone")
		expr, plain := drawCron(t, zone, true)
		cron, err := core.ParseCron(expr, zone)
		if err != nil {
			require.ErrorContains(t, err, "never")
			return
		}
		from := time.Unix(rapid.Int64Range(1_767_225_600, 4_102_444_800).Draw(t, "from"), 0) // 2026 to 2100
		if _, change := from.In(plain.zone).ZoneBounds(); !change.IsZero() && rapid.IntRange(0, 3).Draw(t, "near") > 0 {
			from = change.Add(-time.Duration(rapid.IntRange(-3*3600, 12*3600).Draw(t, "before")) * time.Second)
		}
		limit := from.Add(100 * 24 * time.Hour)
		budget := 3 * 24 * time.Hour // of instants looked at one by one
		if plain.seconds {
			budget = 4 * time.Hour
		}
		for slot := from; ; {
			limit = earlier(limit, slot.Add(budget))
			want, got := plain.next(slot, limit), cron.Next(slot)
			if want.IsZero() {
				require.False(t, got.Before(limit), "%q in %s after %v: %v", expr, zone, slot, got)
				return
			}
			require.True(t, got.Equal(want), "%q in %s after %v: %v, not %v", expr, zone, slot.In(plain.zone), got.In(plain.zone), want.In(plain.zone))
			if budget -= got.Sub(slot); budget <= 0 {
				return
			}
			slot = got
		}
	})
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// TestCronAgainstRobfig: where clocks are left alone, another parser agrees. It reads a step from * as a restriction of
// days, so there are none.
func TestCronAgainstRobfig(t *testing.T) {
	parser := robfig.NewParser(robfig.SecondOptional | robfig.Minute | robfig.Hour | robfig.Dom | robfig.Month | robfig.Dow)
	rapid.Check(t, func(t *rapid.T) {
		zone := rapid.SampledFrom([]string{"UTC", "Asia/Kathmandu", "Asia/Tokyo"}).Draw(t, "zone")
		expr, plain := drawCron(t, zone, false)
		other, err := parser.Parse(expr)
		require.NoError(t, err)
		from := time.Unix(rapid.Int64Range(1_767_225_600, 4_102_444_800).Draw(t, "from"), 0).In(plain.zone)
		cron, err := core.ParseCron(expr, zone)
		if err != nil {
			require.True(t, other.Next(from).IsZero(), "%q: %v", expr, err)
			return
		}
		for slot := from; ; {
			want := other.Next(slot)
			if want.IsZero() { // it looks five years ahead
				return
			}
			got := cron.Next(slot)
			require.True(t, got.Equal(want), "%q in %s after %v: %v, not %v", expr, zone, slot, got, want)
			if slot = want; slot.Sub(from) > 24*time.Hour || rapid.IntRange(0, 5).Draw(t, "enough") == 0 {
				return
			}
		}
	})
}
