package pgwake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/pgsql"
)

// Listener is a connection that listens to the store's channel. One goroutine uses it.
type Listener interface {
	// Next waits for a notification and returns its payload. It returns an error when ctx ends, after which the
	// listener is still of use, and when the connection is broken, after which it is not.
	Next(ctx context.Context) (payload string, err error)
	// Ping asks the server for a sign of life.
	Ping(ctx context.Context) error
	// Close ends it.
	Close(ctx context.Context)
}

// How the channel heals (Q16).
const (
	probeEvery   = 15 * time.Second // of silence
	probeTimeout = 5 * time.Second
	firstBackoff = time.Second
	lastBackoff  = 30 * time.Second
)

// Ear hears the notifications of other processes for a hub, and for the marks of claims.
type Ear struct {
	Hub     *Hub
	Marks   *pgsql.Marks
	Connect func(ctx context.Context) (Listener, error)
	Tell    func(ctx context.Context, payload string) error // over a connection that does not listen
	Logger  *slog.Logger
	Own     string // the origin of this process's notifications, which the hub knows already
}

// Payload is what a notification says: its origin, "-" if nobody's, the smallest place and time, 0 if none, and the
// queue.
func Payload(origin string, n pgsql.News) string {
	due := int64(0)
	if !n.Due.IsZero() {
		due = n.Due.UnixMicro()
	}
	return fmt.Sprintf("%s %d %d %s", origin, n.Place, due, n.Queue)
}

// Nobody is the origin of news that their own process has to hear as well.
const Nobody = "-"

func parse(payload string) (origin string, n pgsql.News, ok bool) {
	parts := strings.SplitN(payload, " ", 4)
	if len(parts) != 4 {
		return "", n, false
	}
	place, err1 := strconv.ParseInt(parts[1], 10, 64)
	due, err2 := strconv.ParseInt(parts[2], 10, 64)
	n = pgsql.News{Queue: parts[3], Place: place}
	if due != 0 {
		n.Due = time.UnixMicro(due)
	}
	return parts[0], n, err1 == nil && err2 == nil
}

// Listen connects and hears until ctx ends. A connection that breaks, or gives no sign of life, is made anew: at
// once, then with longer and longer waits; one warning per outage. Whenever there is a new connection everybody is
// woken, since news may have been missed.
func (e *Ear) Listen(ctx context.Context) {
	wait, warned := time.Duration(0), false
	for ctx.Err() == nil {
		l, err := e.connect(ctx)
		if err == nil {
			if err = e.prove(ctx, l); err == nil {
				if warned {
					e.Logger.Info("stint: wake channel is back")
				}
				wait, warned = 0, false
				e.Marks.Start()
				e.Hub.RingAll()
				err = e.hear(ctx, l)
				e.Marks.Stop()
			}
			closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTimeout)
			l.Close(closing)
			cancel()
		}
		if ctx.Err() != nil {
			return
		}
		if !warned {
			e.Logger.Warn("stint: wake channel is down, polling meanwhile", "error", err)
			warned = true
		}
		if wait > 0 && !sleep(ctx, wait/2+rand.N(wait)) {
			return
		}
		wait = min(max(2*wait, firstBackoff), lastBackoff)
	}
}

func (e *Ear) connect(ctx context.Context) (Listener, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return e.Connect(ctx)
}

// nowhere is a queue that nobody can have.
const nowhere = "#"

// prove sees to it that what other connections tell arrives. A pooler that lends connections for one transaction each
// takes a LISTEN like any other statement, and nothing ever comes.
func (e *Ear) prove(ctx context.Context, l Listener) error {
	proving, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	nonce := core.NewToken()
	if err := e.Tell(proving, Payload(nonce, pgsql.News{Queue: nowhere})); err != nil {
		return err
	}
	for {
		payload, err := l.Next(proving)
		if err != nil && proving.Err() != nil && ctx.Err() == nil {
			return errDeaf
		}
		if err != nil {
			return err
		}
		if origin, _, _ := parse(payload); origin == nonce {
			return nil // what else was told meanwhile, everybody is about to look for
		}
	}
}

var errDeaf = errors.New("the connection that listens hears nothing (a pooler in between that shares connections?)")

// hear passes notifications on until the connection breaks or ctx ends.
func (e *Ear) hear(ctx context.Context, l Listener) error {
	for {
		waiting, cancel := context.WithTimeout(ctx, probeEvery)
		payload, err := l.Next(waiting)
		silent := err != nil && waiting.Err() != nil && ctx.Err() == nil
		cancel()
		switch {
		case err == nil:
			e.heard(payload)
		case !silent:
			return err
		default:
			probing, cancel := context.WithTimeout(ctx, probeTimeout)
			err := l.Ping(probing)
			cancel()
			if err != nil {
				return err
			}
		}
	}
}

func (e *Ear) heard(payload string) {
	origin, news, ok := parse(payload)
	switch {
	case !ok: // of another release, it may be
		e.Marks.Start()
		e.Hub.RingAll()
	case origin != e.Own:
		e.Marks.Lower(news)
		e.Hub.Ring(news)
	}
}

// sleep reports false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
