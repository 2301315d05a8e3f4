package core_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
)

func at(t testing.TB, s string) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339Nano, s)
	require.NoError(t, err)
	return parsed
}

// TestCronNext: slots one after the other, strictly after the given time (Q26).
func TestCronNext(t *testing.T) {
	for _, c := range []struct {
		about, expr, zone, after string
		want                     string // in the zone, or UTC, as RFC 3339
	}{
		{"every minute", "* * * * *", "", "2026-11-30T12:00:00Z", "2026-11-30T12:01:00Z 2026-11-30T12:02:00Z"},
		{"strictly after, parts of a second included", "0 12 * * *", "", "2026-11-30T11:59:59.999999999Z", "2026-11-30T12:00:00Z"},
		{"a moment too late", "0 12 * * *", "", "2026-11-30T12:00:00.000000001Z", "2026-12-01T12:00:00Z"},
		{"steps", "*/20 8-18/4 * * *", "", "2026-11-30T11:00:00Z", "2026-11-30T12:00:00Z 2026-11-30T12:20:00Z 2026-11-30T12:40:00Z 2026-11-30T16:00:00Z"},
		{"a step from a value on", "5/25 0 * * *", "", "2026-11-30T00:04:59Z", "2026-11-30T00:05:00Z 2026-11-30T00:30:00Z 2026-11-30T00:55:00Z 2026-12-01T00:05:00Z"},
		{"lists and ranges", "0 1,3-4,22 * * *", "", "2026-11-30T02:00:00Z", "2026-11-30T03:00:00Z 2026-11-30T04:00:00Z 2026-11-30T22:00:00Z 2026-12-01T01:00:00Z"},
		{"seconds in front", "10,50 59 23 31 12 *", "", "2026-11-30T00:00:00Z", "2026-12-31T23:59:10Z 2026-12-31T23:59:50Z 2027-12-31T23:59:10Z"},
		{"every second", "* * * * * *", "", "2026-12-31T23:59:58.5Z", "2026-12-31T23:59:59Z 2027-01-01T00:00:00Z"},
		{"names in any case", "0 0 * jan,Dec FRI", "", "2026-12-24T00:00:00Z", "2026-12-25T00:00:00Z 2027-01-01T00:00:00Z"},
		{"a range of names", "0 9 * * Mon-fri", "", "2026-11-27T09:00:00Z", "2026-11-30T09:00:00Z"},
		{"7 is Sunday", "0 0 * * 7", "", "2026-11-30T00:00:00Z", "2026-12-06T00:00:00Z 2026-12-13T00:00:00Z"},
		{"0 is Sunday", "0 0 * * 0", "", "2026-11-30T00:00:00Z", "2026-12-06T00:00:00Z"},
		{"a range up to 7", "0 0 * * 6-7", "", "2026-11-30T00:00:00Z", "2026-12-05T00:00:00Z 2026-12-06T00:00:00Z 2026-12-12T00:00:00Z"},
		{"a range up to Sunday", "0 0 * * SAT-SUN", "", "2026-11-30T00:00:00Z", "2026-12-05T00:00:00Z 2026-12-06T00:00:00Z 2026-12-12T00:00:00Z"},
		{"Sunday to Sunday is one day", "0 0 * * SUN-SUN", "", "2026-11-30T00:00:00Z", "2026-12-06T00:00:00Z 2026-12-13T00:00:00Z"},
		{"day of month or of week", "0 0 13 * FRI", "", "2026-11-30T00:00:00Z", "2026-12-04T00:00:00Z 2026-12-11T00:00:00Z 2026-12-13T00:00:00Z 2026-12-18T00:00:00Z"},
		{"a step from * does not restrict: both must match", "0 0 */2 * MON", "", "2026-11-30T00:00:00Z", "2026-12-07T00:00:00Z 2026-12-21T00:00:00Z"},
		{"a question mark is *", "0 0 ? * MON", "", "2026-11-30T00:00:00Z", "2026-12-07T00:00:00Z"},
		{"the 31st", "0 0 31 * *", "", "2026-11-30T00:00:00Z", "2026-12-31T00:00:00Z 2027-01-31T00:00:00Z 2027-03-31T00:00:00Z"},
		{"February 29", "0 0 29 2 *", "", "2026-11-30T00:00:00Z", "2028-02-29T00:00:00Z 2032-02-29T00:00:00Z"},
		{"February 29 where 2100 has none", "0 0 29 2 *", "", "2096-02-29T00:00:00Z", "2104-02-29T00:00:00Z"},
		{"February 29, a Monday", "0 0 29 2 */7", "", "2026-11-30T00:00:00Z", "2032-02-29T00:00:00Z 2060-02-29T00:00:00Z"},
		{"@yearly", "@yearly", "", "2026-11-30T00:00:00Z", "2027-01-01T00:00:00Z 2028-01-01T00:00:00Z"},
		{"@annually", "@annually", "", "2026-11-30T00:00:00Z", "2027-01-01T00:00:00Z"},
		{"@monthly", "@monthly", "", "2026-11-30T00:00:00Z", "2026-12-01T00:00:00Z 2027-01-01T00:00:00Z"},
		{"@weekly", "@weekly", "", "2026-11-30T00:00:00Z", "2026-12-06T00:00:00Z"},
		{"@daily", "@daily", "", "2026-11-30T00:00:00Z", "2026-12-01T00:00:00Z"},
		{"@midnight, spaces around", " @Midnight\t", "", "2026-11-30T00:00:00Z", "2026-12-01T00:00:00Z"},
		{"@hourly", "@hourly", "", "2026-11-30T00:00:00Z", "2026-11-30T01:00:00Z"},
		{"a zone east", "0 0 * * *", "Asia/Kolkata", "2026-11-30T00:00:00Z", "2026-12-01T00:00:00+05:30"},
		{"a zone west", "0 0 * * *", "America/New_York", "2026-11-30T00:00:00Z", "2026-11-30T00:00:00-05:00"},
		{"the default zone by name", "0 0 * * *", "UTC", "2026-11-30T00:00:00Z", "2026-12-01T00:00:00Z"},
		{"the last year", "0 0 1 1 *", "", "9998-06-01T00:00:00Z", "9999-01-01T00:00:00Z"},

		{"New York, gap: once, right after it", "30 2 * * *", "America/New_York", "2026-03-07T12:00:00-05:00", "2026-03-08T03:00:00-04:00 2026-03-09T02:30:00-04:00"},
		{"New York, gap: many are one", "*/10 2 * * *", "America/New_York", "2026-03-07T12:00:00-05:00", "2026-03-08T03:00:00-04:00 2026-03-09T02:00:00-04:00"},
		{"New York, gap: and one with what is due then", "0 2,3 * * *", "America/New_York", "2026-03-08T00:00:00-05:00", "2026-03-08T03:00:00-04:00 2026-03-09T02:00:00-04:00"},
		{"New York, gap, on that day only", "30 2 8 3 *", "America/New_York", "2026-01-01T00:00:00Z", "2026-03-08T03:00:00-04:00 2027-03-08T02:30:00-05:00"},
		{"New York, gap, hourly", "30 * * * *", "America/New_York", "2026-03-08T01:00:00-05:00", "2026-03-08T01:30:00-05:00 2026-03-08T03:30:00-04:00 2026-03-08T04:30:00-04:00"},
		{"New York, gap, quarters", "*/15 * * * *", "America/New_York", "2026-03-08T01:30:00-05:00", "2026-03-08T01:45:00-05:00 2026-03-08T03:00:00-04:00 2026-03-08T03:15:00-04:00"},
		{"New York, gap, every second hour", "0 */2 * * *", "America/New_York", "2026-03-08T00:00:00-05:00", "2026-03-08T03:00:00-04:00 2026-03-08T04:00:00-04:00 2026-03-08T06:00:00-04:00"},
		{"New York, gap, seconds", "59 59 2 * * *", "America/New_York", "2026-03-08T00:00:00-05:00", "2026-03-08T03:00:00-04:00 2026-03-09T02:59:59-04:00"},
		{"New York, fold: the first", "30 1 * * *", "America/New_York", "2026-10-31T12:00:00-04:00", "2026-11-01T01:30:00-04:00 2026-11-02T01:30:00-05:00"},
		{"New York, fold: its end", "0 2 * * *", "America/New_York", "2026-10-31T12:00:00-04:00", "2026-11-01T02:00:00-05:00 2026-11-02T02:00:00-05:00"},
		{"New York, fold, asked within the second hour", "30 1 * * *", "America/New_York", "2026-11-01T01:10:00-05:00", "2026-11-02T01:30:00-05:00"},
		{"New York, fold, hourly", "0 * * * *", "America/New_York", "2026-11-01T00:00:00-04:00", "2026-11-01T01:00:00-04:00 2026-11-01T01:00:00-05:00 2026-11-01T02:00:00-05:00"},
		{"New York, fold, quarters", "*/15 * * * *", "America/New_York", "2026-11-01T01:30:00-04:00", "2026-11-01T01:45:00-04:00 2026-11-01T01:00:00-05:00 2026-11-01T01:15:00-05:00"},
		{"New York, fold, hours as a range", "0 0-23 * * *", "America/New_York", "2026-11-01T01:00:00-04:00", "2026-11-01T01:00:00-05:00 2026-11-01T02:00:00-05:00"},
		{"New York, fold, some hours", "*/30 1-3 * * *", "America/New_York", "2026-11-01T01:00:00-04:00", "2026-11-01T01:30:00-04:00 2026-11-01T02:00:00-05:00"},

		{"Berlin, gap", "15 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00+01:00", "2026-03-29T03:00:00+02:00 2026-03-30T02:15:00+02:00"},
		{"Berlin, fold", "15 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00+02:00", "2026-10-25T02:15:00+02:00 2026-10-26T02:15:00+01:00"},
		{"Berlin, far ahead", "15 2 * * *", "Europe/Berlin", "2099-03-28T12:00:00+01:00", "2099-03-29T03:00:00+02:00 2099-03-30T02:15:00+02:00"},
		{"Berlin, the last day of a leap year", "30 */12 31 12 *", "Europe/Berlin", "2039-12-31T13:00:00+01:00", "2040-12-31T00:30:00+01:00 2040-12-31T12:30:00+01:00 2041-12-31T00:30:00+01:00"},
		{"Berlin, a day that is rarely there", "30 2 29 3 SUN", "Europe/Berlin", "2026-03-23T00:00:00Z", "2026-03-29T03:00:00+02:00 2027-03-07T02:30:00+01:00"},

		{"Lord Howe, half a gap", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00+10:30", "2026-10-04T02:30:00+11:00 2026-10-05T02:15:00+11:00"},
		{"Lord Howe, after the gap", "30 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00+10:30", "2026-10-04T02:30:00+11:00 2026-10-05T02:30:00+11:00"},
		{"Lord Howe, gap, hourly: the missing hour comes when it has passed", "0 * * * *", "Australia/Lord_Howe", "2026-10-04T01:00:00+10:30", "2026-10-04T02:30:00+11:00 2026-10-04T03:00:00+11:00 2026-10-04T04:00:00+11:00"},
		{"Lord Howe, gap, hourly at the half", "30 * * * *", "Australia/Lord_Howe", "2026-10-04T01:30:00+10:30", "2026-10-04T02:30:00+11:00 2026-10-04T03:30:00+11:00"},
		{"Lord Howe, gap, quarters", "*/15 * * * *", "Australia/Lord_Howe", "2026-10-04T01:30:00+10:30", "2026-10-04T01:45:00+10:30 2026-10-04T02:30:00+11:00 2026-10-04T02:45:00+11:00"},
		{"Lord Howe, fold", "45 1 * * *", "Australia/Lord_Howe", "2026-04-04T12:00:00+11:00", "2026-04-05T01:45:00+11:00 2026-04-06T01:45:00+10:30"},
		{"Lord Howe, fold, quarters", "*/15 * * * *", "Australia/Lord_Howe", "2026-04-05T01:30:00+11:00", "2026-04-05T01:45:00+11:00 2026-04-05T01:30:00+10:30 2026-04-05T01:45:00+10:30 2026-04-05T02:00:00+10:30"},

		{"Casablanca, Ramadan begins: 3:00 is 2:00 again", "30 2 * * *", "Africa/Casablanca", "2026-02-14T12:00:00+01:00", "2026-02-15T02:30:00+01:00 2026-02-16T02:30:00Z"},
		{"Casablanca, Ramadan ends: 2:00 is 3:00", "30 2 * * *", "Africa/Casablanca", "2026-03-21T12:00:00Z", "2026-03-22T03:00:00+01:00 2026-03-23T02:30:00+01:00"},

		{"São Paulo, a day that began at 1:00", "0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00-03:00", "2018-11-04T01:00:00-02:00 2018-11-05T00:00:00-02:00"},
		{"São Paulo, the last hour of a day twice", "30 23 * * *", "America/Sao_Paulo", "2018-02-17T12:00:00-02:00", "2018-02-17T23:30:00-02:00 2018-02-18T23:30:00-03:00"},
		{"São Paulo, twice, hourly on that day only", "30 * 17 2 *", "America/Sao_Paulo", "2018-02-17T22:30:00-02:00", "2018-02-17T23:30:00-02:00 2018-02-17T23:30:00-03:00 2019-02-17T00:30:00-03:00"},
		{"Cairo, a Friday that begins at 1:00", "0 0 * * FRI", "Africa/Cairo", "2026-04-20T00:00:00Z", "2026-04-24T01:00:00+03:00 2026-05-01T00:00:00+03:00"},
		{"Beirut, @daily", "@daily", "Asia/Beirut", "2026-03-28T12:00:00+02:00", "2026-03-29T01:00:00+03:00 2026-03-30T00:00:00+03:00"},
		{"Beirut, the last hour of a day", "59 23 * * *", "Asia/Beirut", "2026-03-28T12:00:00+02:00", "2026-03-28T23:59:00+02:00 2026-03-29T23:59:00+03:00"},
		{"Troll, two hours", "30 1,2 * * *", "Antarctica/Troll", "2026-03-28T12:00:00Z", "2026-03-29T03:00:00+02:00 2026-03-30T01:30:00+02:00"},
		{"Apia, a day that never was", "0 12 * * *", "Pacific/Apia", "2011-12-29T12:00:00-10:00", "2011-12-31T00:00:00+14:00 2011-12-31T12:00:00+14:00"},
	} {
		cron, err := core.ParseCron(c.expr, c.zone)
		require.NoError(t, err, c.about)
		now := at(t, c.after)
		for want := range strings.FieldsSeq(c.want) {
			next := cron.Next(now)
			require.True(t, next.Equal(at(t, want)), "%s: %q in %q after %v: %v, not %s", c.about, c.expr, c.zone, now, next, want)
			require.Equal(t, time.UTC, next.Location(), c.about)
			now = next
		}
	}
}

// TestCronEnd: the calendar ends with the year 9999, in UTC as in the zone.
func TestCronEnd(t *testing.T) {
	for _, c := range []struct{ expr, zone, after string }{
		{"0 0 1 1 *", "", "9999-01-01T00:00:00Z"},
		{"0 0 29 2 *", "", "9996-02-29T00:00:00Z"},
		{"30 23 31 12 *", "America/New_York", "9999-12-31T00:00:00Z"},
		{"* * * * * *", "", "9999-12-31T23:59:59Z"},
	} {
		cron, err := core.ParseCron(c.expr, c.zone)
		require.NoError(t, err)
		require.Zero(t, cron.Next(at(t, c.after)), c.expr)
	}
}

// TestCronRefused: what can't be meant is refused with the field and a reason (Q26).
func TestCronRefused(t *testing.T) {
	for _, c := range []struct{ expr, zone, field, reason string }{
		{"", "", "Cron", "0 fields"},
		{"* * * *", "", "Cron", "4 fields"},
		{"* * * * * * *", "", "Cron", "7 fields"},
		{"60 * * * *", "", "Cron", "minute"},
		{"-1 * * * *", "", "Cron", "minute"},
		{"+1 * * * *", "", "Cron", "minute"},
		{"1.5 * * * *", "", "Cron", "minute"},
		{"* 24 * * *", "", "Cron", "hour"},
		{"* * 0 * *", "", "Cron", "day of month"},
		{"* * 32 * *", "", "Cron", "day of month"},
		{"* * * 0 *", "", "Cron", "month"},
		{"* * * 13 *", "", "Cron", "month"},
		{"* * * ANJ *", "", "Cron", "month"},
		{"* * * MON *", "", "Cron", "month"},
		{"* * * * 8", "", "Cron", "day of week"},
		{"* * * * MONDAY", "", "Cron", "day of week"},
		{"60 * * * * *", "", "Cron", "second"},
		{"*/0 * * * *", "", "Cron", "step"},
		{"*/61 * * * *", "", "Cron", "step"},
		{"*/ * * * *", "", "Cron", "step"},
		{"*/-5 * * * *", "", "Cron", "step"},
		{"*/5/5 * * * *", "", "Cron", "step"},
		{"* 22-2 * * *", "", "Cron", "backwards"},
		{"1- * * * *", "", "Cron", "minute"},
		{"1-2-3 * * * *", "", "Cron", "minute"},
		{"1,,2 * * * *", "", "Cron", "minute"},
		{", * * * *", "", "Cron", "minute"},
		{"*5 * * * *", "", "Cron", "minute"},
		{"? * * * *", "", "Cron", "minute"},
		{"* * L * *", "", "Cron", "day of month"},
		{"* * 15W * *", "", "Cron", "day of month"},
		{"* * * * 5#3", "", "Cron", "day of week"},
		{"\x00 * * * *", "", "Cron", "minute"},
		{"@reboot", "", "Cron", "no name"},
		{"@", "", "Cron", "no name"},
		{"@daily *", "", "Cron", "more than"},
		{"@every 1h", "", "Cron", "interval"},
		{"TZ=UTC", "", "Cron", "Zone"},
		{"CRON_TZ=Europe/Berlin 0 2 * * *", "", "Cron", "Zone"},
		{strings.Repeat("1,", 300) + "1 * * * *", "", "Cron", "bytes"},
		{"0 0 30 2 *", "", "Cron", "never"},
		{"0 0 31 2,4,6,9,11 *", "", "Cron", "never"},
		{"0 0 30 2 */2", "", "Cron", "never"},
		{"@daily", "Local", "Zone", "host"},
		{"@daily", "localtime", "Zone", "host"},
		{"@daily", "Europe/Atlantis", "Zone", "unknown"},
		{"@daily", "../etc/passwd", "Zone", "unknown"},
		{"@daily", "/etc/localtime", "Zone", "unknown"},
		{"@daily", "a\x00b", "Zone", "unknown"},
		{"@daily", "UTC+1", "Zone", "unknown"},
	} {
		_, err := core.ParseCron(c.expr, c.zone)
		var invalid *core.InvalidError
		require.True(t, errors.As(err, &invalid), "%q %q: %v", c.expr, c.zone, err)
		require.Equal(t, c.field, invalid.Field, "%q %q: %v", c.expr, c.zone, err)
		require.Contains(t, invalid.Reason, c.reason, "%q %q", c.expr, c.zone)
	}
	// With a weekday beside it, a day that is never there is no harm.
	_, err := core.ParseCron("0 0 30 2 MON", "")
	require.NoError(t, err)
}

// FuzzParseCron: an expression is refused with an InvalidError, or has a slot, strictly later than any before.
func FuzzParseCron(f *testing.F) {
	f.Add("0 2 * * MON-FRI", "Europe/Berlin", int64(0))
	f.Add("*/15 1,3-5/2 ? JAN-dec 7", "America/New_York", int64(1<<32))
	f.Add("0 0 0 29 2 */3", "Australia/Lord_Howe", int64(-1<<40))
	f.Add("@every 90s", "Local", int64(1))
	f.Fuzz(func(t *testing.T, expr, zone string, unix int64) {
		cron, err := core.ParseCron(expr, zone)
		if err != nil {
			if _, ok := errors.AsType[*core.InvalidError](err); !ok {
				t.Fatalf("%v", err)
			}
			return
		}
		const year1, year9900 = -62_135_596_800, 250_249_000_000
		from := time.Unix(year1+(unix&(1<<62)-1)%(year9900-year1), 0)
		if next := cron.Next(from); !next.After(from) {
			t.Fatalf("%q %q after %v: %v", expr, zone, from, next)
		} else if after := cron.Next(next); !after.After(next) {
			t.Fatalf("%q %q after %v: %v", expr, zone, next, after)
		}
	})
}

func BenchmarkCronNext(b *testing.B) {
	for _, c := range []struct{ name, expr, zone string }{
		{"minute/UTC", "* * * * *", ""},
		{"daily/NewYork", "30 2 * * *", "America/New_York"},
		{"leapMonday/NewYork", "30 2 29 2 */7", "America/New_York"},
		{"leapHourly/NewYork", "30 * 29 2 */7", "America/New_York"},
	} {
		b.Run(c.name, func(b *testing.B) {
			cron, err := core.ParseCron(c.expr, c.zone)
			require.NoError(b, err)
			from := at(b, "2033-11-30T00:00:00Z")
			b.ReportAllocs()
			for b.Loop() {
				cron.Next(from)
			}
		})
	}
}
