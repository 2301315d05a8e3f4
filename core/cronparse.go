package core

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseCron reads a cron expression and the IANA name of the time zone that it counts in; "" is UTC. The error is an
// *InvalidError that says what is wrong with Cron or Zone.
//
// An expression has five fields, or six with seconds in front (0 without):
//
//	second  minute  hour  day of month  month         day of week
//	0-59    0-59    0-23  1-31          1-12 JAN-DEC  0-7 SUN-SAT, 0 and 7 are Sunday
//
// Each is *, a value, a range 1-5, either with a step (*/15, 1-31/2; 5/15 is 5-59/15), or a list of these with commas.
// Names are read in any case. In the fields for days ? is *. If both of these are restricted, a day that matches either
// matches; a field that begins with * is not restricted. @yearly, @annually, @monthly, @weekly, @daily, @midnight and
// @hourly stand for what they say, at its first moment.
//
// Expressions that never match, as February 30, are refused. The zone must be known on this machine: it has the system's
// time zone database, or the program imports time/tzdata. "Local" is refused.
func ParseCron(expr, zone string) (*Cron, error) {
	c := &Cron{}
	if err := c.parse(expr); err != nil {
		return nil, &InvalidError{"Cron", fmt.Sprintf("%q %v", brief(expr), err)}
	}
	if !c.everMatches() {
		return nil, &InvalidError{"Cron", fmt.Sprintf("%q never matches: no month of it has such a day", expr)}
	}
	if l := strings.ToLower(zone); l == "local" || l == "localtime" {
		return nil, &InvalidError{"Zone", "must not be the host's: hosts disagree about it"}
	}
	var err error
	if c.zone, err = time.LoadLocation(zone); err != nil {
		return nil, &InvalidError{"Zone", fmt.Sprintf("%q is unknown here: %v", brief(zone), err)}
	}
	return c, nil
}

// cronField is one column of an expression.
type cronField struct {
	name     string
	low      int
	high     int
	names    string // three letters each
	question bool   // ? is *
}

var cronFields = [...]cronField{
	{name: "second", high: 59},
	{name: "minute", high: 59},
	{name: "hour", high: 23},
	{name: "day of month", low: 1, high: 31, question: true},
	{name: "month", low: 1, high: 12, names: "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC"},
	{name: "day of week", high: 7, names: "SUNMONTUEWEDTHUFRISAT", question: true},
}

// maxCronBytes bounds an expression.
const maxCronBytes = 512

func (c *Cron) parse(expr string) error {
	if len(expr) > maxCronBytes {
		return fmt.Errorf("has %d bytes, more than %d", len(expr), maxCronBytes)
	}
	fields := strings.Fields(expr)
	if len(fields) > 0 && fields[0][0] == '@' {
		plain, err := cronMacro(fields)
		if err != nil {
			return err
		}
		fields = strings.Fields(plain)
	}
	switch {
	case len(fields) > 0 && strings.Contains(fields[0], "TZ="):
		return fmt.Errorf("names a time zone, which belongs into Zone")
	case len(fields) == len(cronFields)-1:
		fields = append([]string{"0"}, fields...)
	case len(fields) != len(cronFields):
		return fmt.Errorf("has %d fields instead of 5, or 6 with seconds", len(fields))
	}
	for i, set := range []*uint64{&c.second, &c.minute, &c.hour, &c.day, &c.month, &c.week} {
		var err error
		if *set, err = cronFields[i].parse(fields[i]); err != nil {
			return err
		}
	}
	c.week = (c.week | c.week>>7) & (1<<7 - 1) // 7 is Sunday too
	restricted := func(field string) bool { return field[0] != '*' && field[0] != '?' }
	c.either = restricted(fields[3]) && restricted(fields[5])
	return nil
}

func cronMacro(fields []string) (string, error) {
	name := strings.ToLower(fields[0])
	switch {
	case name == everyMacro:
		return "", fmt.Errorf("is an interval, which a Schedule takes and ParseCron does not")
	case len(fields) > 1:
		return "", fmt.Errorf("has more than a name that begins with @")
	}
	switch name {
	case "@yearly", "@annually":
		return "0 0 1 1 *", nil
	case "@monthly":
		return "0 0 1 * *", nil
	case "@weekly":
		return "0 0 * * 0", nil
	case "@daily", "@midnight":
		return "0 0 * * *", nil
	case "@hourly":
		return "0 * * * *", nil
	}
	return "", fmt.Errorf("is no name that is known: @yearly, @monthly, @weekly, @daily, @hourly are")
}

// everMatches reports whether a month has a day that matches. Every date has every weekday once in 40 years.
func (c *Cron) everMatches() bool {
	const leapYear = 2000
	for m := time.January; m <= time.December; m++ {
		length := time.Date(leapYear, m+1, 0, 0, 0, 0, 0, time.UTC).Day()
		if c.month>>m&1 == 1 && (c.either || c.day&(1<<(length+1)-2) != 0) {
			return true
		}
	}
	return false
}

// parse reads one field into bits.
func (f *cronField) parse(field string) (set uint64, err error) {
	for part := range strings.SplitSeq(field, ",") {
		bits, err := f.parsePart(part)
		if err != nil {
			return 0, err
		}
		set |= bits
	}
	return set, nil
}

func (f *cronField) parsePart(part string) (uint64, error) {
	span, stepText, stepped := strings.Cut(part, "/")
	low, high := f.low, f.last()
	if span != "*" && (span != "?" || !f.question) {
		from, to, ranged := strings.Cut(span, "-")
		var err error
		if low, err = f.value(from); err != nil {
			return 0, err
		}
		switch {
		case ranged:
			if high, err = f.value(to); err != nil {
				return 0, err
			}
			if high == 0 && low > 0 && f.last() < f.high {
				high = f.high // Sunday ends a week as well
			}
		case stepped:
			high = max(low, f.last())
		default:
			high = low
		}
		if low > high {
			return 0, fmt.Errorf("has a range that runs backwards in its %s: %q", f.name, part)
		}
	}
	step := 1
	if stepped {
		var err error
		if step, err = number(stepText); err != nil || step < 1 || step > f.last()-f.low+1 {
			return 0, fmt.Errorf("has a step in its %s that is not 1 to %d: %q", f.name, f.last()-f.low+1, part)
		}
	}
	var set uint64
	for v := low; v <= high; v += step {
		set |= 1 << v
	}
	return set, nil
}

// last is the highest value that is no other name for the lowest.
func (f *cronField) last() int {
	if f.high == 7 {
		return 6
	}
	return f.high
}

// value reads a number or a name.
func (f *cronField) value(s string) (int, error) {
	if len(s) == 3 {
		if i := strings.Index(f.names, strings.ToUpper(s)); i >= 0 && i%3 == 0 {
			return i/3 + f.low, nil
		}
	}
	v, err := number(s)
	if err != nil || v < f.low || v > f.high {
		return 0, fmt.Errorf("has a %s that is not %d to %d: %q", f.name, f.low, f.high, s)
	}
	return v, nil
}

// number reads a few decimal digits.
func number(s string) (int, error) {
	v, err := strconv.ParseUint(s, 10, 8)
	return int(v), err
}
