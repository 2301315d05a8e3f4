package pgwake

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/pgsql"
)

var errClosed = errors.New("closed")

func TestHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHub("h", errClosed)
		ctx, cancel := context.WithCancel(t.Context())
		token := h.Token()
		wake := func(queues []string, since core.WakeToken) core.Wake {
			t.Helper()
			w, err := h.Await(ctx, queues, since)
			require.NoError(t, err)
			return w
		}
		h.Ring(pgsql.News{Queue: "q"})
		require.Equal(t, core.Wake{Token: h.Token()}, wake([]string{"q"}, token), "news since the token")
		require.Equal(t, core.Wake{Token: h.Token()}, wake(nil, ""), "no token")
		require.True(t, wake(nil, core.WakeToken("other.1")).Control, "another hub's")
		require.True(t, wake(nil, core.WakeToken("h.99")).Control, "one of the future")

		returned := make(chan core.Wake, 1)
		go func() { returned <- wake([]string{"q"}, h.Token()) }()
		synctest.Wait()
		h.Ring(pgsql.News{Queue: "r"})
		synctest.Wait()
		require.Empty(t, returned, "another queue's news")
		h.Ring(pgsql.News{Queue: Control})
		require.True(t, (<-returned).Control)

		go func() { returned <- wake([]string{"q"}, h.Token()) }()
		synctest.Wait()
		h.RingAll()
		<-returned
		cancel()
		_, err := h.Await(ctx, nil, h.Token())
		require.ErrorIs(t, err, context.Canceled)
		h.Close()
		_, err = h.Await(t.Context(), nil, h.Token())
		require.ErrorIs(t, err, errClosed)
	})
}

func TestTellerKeepsTheGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type message struct {
			after time.Duration
			news  []pgsql.News
		}
		sent := make(chan message, 10)
		start := time.Now()
		teller := NewTeller(func(_ context.Context, news []pgsql.News) error {
			sent <- message{time.Since(start), news}
			return nil
		}, func(err error) { t.Error(err) })
		require.True(t, teller.Due("q"))
		require.False(t, teller.Due("q"))
		require.True(t, teller.Due("r"))
		for place := int64(9); place > 4; place-- {
			teller.Tell(pgsql.News{Queue: "q", Place: place})
		}
		synctest.Wait()
		require.Empty(t, sent)
		time.Sleep(time.Second) // of the bubble's
		require.Equal(t, message{Gap, []pgsql.News{{Queue: "q", Place: 5}}}, <-sent, "one notification, the smallest place")
		require.Empty(t, sent)

		teller.Tell(pgsql.News{Queue: "q"})
		synctest.Wait()
		require.Equal(t, time.Second, (<-sent).after, "at once after a silence")
		teller.Tell(pgsql.News{Queue: "q"})
		require.Empty(t, sent)
		teller.Close()
		require.Equal(t, time.Second, (<-sent).after, "Close tells what is pending")
		teller.Tell(pgsql.News{Queue: "q"})
		time.Sleep(time.Second)
		require.Empty(t, sent)
	})
}

func TestPayload(t *testing.T) {
	for _, n := range []pgsql.News{
		{Queue: "a queue with spaces", Place: 7, Due: time.UnixMicro(123456789)}, {Queue: "q"}, {Queue: Control},
	} {
		origin, got, ok := parse(Payload("me", n))
		require.True(t, ok)
		require.Equal(t, "me", origin)
		require.Equal(t, n, got)
	}
	for _, bad := range []string{"", "me", "me 1 2", "me x 2 q", "me 1 x q"} {
		_, _, ok := parse(bad)
		require.False(t, ok, bad)
	}
}

// line is a connection of a test.
type line struct {
	payloads chan string
	broken   chan struct{}
	dead     *atomic.Bool // gives no sign of life
}

func (l line) Next(ctx context.Context) (string, error) {
	select {
	case p := <-l.payloads:
		return p, nil
	case <-l.broken:
		return "", errors.New("broken")
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (l line) Ping(ctx context.Context) error {
	if l.dead.Load() {
		<-ctx.Done()
	}
	return ctx.Err()
}

func (l line) Close(context.Context) {}

// TestEarIsProven: a connection on which nothing of what others tell arrives, through a pooler say, is as good as none.
func TestEarIsProven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var tries, deaf atomic.Int64
		deaf.Store(3)
		payloads := make(chan string)
		var log bytes.Buffer
		h, marks := NewHub("h", errClosed), &pgsql.Marks{}
		e := Ear{Hub: h, Marks: marks, Own: "me", Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Connect: func(context.Context) (Listener, error) {
				tries.Add(1)
				return line{payloads, nil, new(atomic.Bool)}, nil
			},
			Tell: func(_ context.Context, payload string) error {
				if deaf.Add(-1) < 0 {
					go func() { payloads <- payload }()
				}
				return nil
			}}
		done := make(chan struct{})
		go func() { defer close(done); e.Listen(ctx) }()
		token := h.Token()
		_, err := h.Await(ctx, nil, token)
		require.NoError(t, err, "once it hears")
		require.EqualValues(t, 4, tries.Load())
		require.Equal(t, 1, strings.Count(log.String(), "WARN"))
		require.Contains(t, log.String(), "hears nothing")
		require.Equal(t, 1, strings.Count(log.String(), "INFO"))
		stop()
		<-done
	})
}

// TestEarHeals: a connection that broke or died is made anew, with longer and longer waits while that fails, one
// warning per outage, and everybody looks again afterwards.
func TestEarHeals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var up, dead atomic.Bool
		var tries atomic.Int64
		up.Store(true)
		l := line{make(chan string), make(chan struct{}), &dead}
		var log bytes.Buffer
		h := NewHub("h", errClosed)
		e := Ear{Hub: h, Marks: &pgsql.Marks{}, Own: "me", Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Connect: func(context.Context) (Listener, error) {
				tries.Add(1)
				if !up.Load() {
					return nil, errors.New("refused")
				}
				return l, nil
			},
			Tell: func(_ context.Context, payload string) error {
				go func() { l.payloads <- payload }()
				return nil
			}}
		done := make(chan struct{})
		go func() { defer close(done); e.Listen(ctx) }()
		news := func() bool {
			synctest.Wait()
			ctx, cancel := context.WithTimeout(ctx, 50*time.Second) // not when a probe is due
			defer cancel()
			_, err := h.Await(ctx, []string{"q"}, h.Token())
			return err == nil
		}
		synctest.Wait()
		go func() { l.payloads <- Payload("you", pgsql.News{Queue: "q"}) }()
		require.True(t, func() bool { _, err := h.Await(ctx, []string{"q"}, h.Token()); return err == nil }())
		go func() { l.payloads <- Payload("me", pgsql.News{Queue: "q"}) }()
		require.False(t, news(), "its own are known already")
		require.EqualValues(t, 1, tries.Load())

		up.Store(false)
		l.broken <- struct{}{}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		require.Less(t, tries.Load(), int64(60), "it backs off")
		require.Equal(t, 1, strings.Count(log.String(), "WARN"), "one warning per outage")
		token := h.Token()
		up.Store(true)
		_, err := h.Await(ctx, nil, token)
		require.NoError(t, err, "everybody looks again")
		require.Equal(t, 1, strings.Count(log.String(), "INFO"))

		synctest.Wait()
		token = h.Token()
		dead.Store(true)
		go func() { time.Sleep(probeEvery + probeTimeout); dead.Store(false) }()
		_, err = h.Await(ctx, nil, token)
		require.NoError(t, err, "a dead connection is noticed")
		stop()
		<-done
	})
}
