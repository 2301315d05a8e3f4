// Package pqlisten listens to a channel over lib/pq, on a connection of its own.
package pqlisten

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/lib/pq"

	"github.com/stintmq/stint/internal/pgstore"
	"github.com/stintmq/stint/internal/pgwake"
)

// To returns what makes connections of dsn, which listen. A dsn that can't be read is a *core.InvalidError. No error
// shows what is secret in it.
func To(dsn string) (pgstore.Listen, error) {
	secrets, err := secretsOf(dsn)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, channel string) (pgwake.Listener, error) {
		return connect(ctx, dsn, channel, secrets)
	}, nil
}

func connect(ctx context.Context, dsn, channel string, secrets *secrets) (pgwake.Listener, error) {
	l := &listener{secrets: secrets, probe: channel + "_probe", down: make(chan error, 1), begun: make(chan struct{})}
	defer context.AfterFunc(ctx, l.hangUp)()
	l.pq = pq.NewDialListener(l, dsn, time.Millisecond, time.Millisecond, l.event)
	close(l.begun)
	if err := l.pq.Listen(channel); err != nil {
		select {
		case cause := <-l.down:
			err = cause
		default:
		}
		l.Close(ctx)
		return nil, secrets.hide(err)
	}
	return l, nil
}

// listener is a pq.Listener that does not come back: package pgwake decides when there is a new one. It dials for
// itself, since nothing but closing the socket ends what pq waits for.
type listener struct {
	pq      *pq.Listener
	secrets *secrets
	probe   string        // a channel on which nobody speaks
	probing bool          // it listens to that
	begun   chan struct{} // closed once pq is set
	down    chan error    // why the connection ended

	mu     sync.Mutex
	conn   net.Conn
	hungUp bool
}

// event hears of the connection, from pq's goroutine.
func (l *listener) event(event pq.ListenerEventType, err error) {
	if event != pq.ListenerEventDisconnected && event != pq.ListenerEventConnectionAttemptFailed {
		return
	}
	if err == nil {
		err = errors.New("the connection was closed")
	}
	select {
	case l.down <- err:
	default:
	}
	<-l.begun
	_ = l.pq.Close() // an error says that it was closed already
}

func (l *listener) Next(ctx context.Context) (string, error) {
	select {
	case n := <-l.pq.NotificationChannel():
		if n != nil {
			return n.Extra, nil
		}
		return "", errors.New("the connection was closed")
	case err := <-l.down:
		return "", l.secrets.hide(err)
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// Ping sends something that the server answers. Not pq's own Ping, which panics when that answer is an error, as a
// server that goes down gives.
func (l *listener) Ping(ctx context.Context) error {
	defer context.AfterFunc(ctx, l.hangUp)()
	if l.probing = !l.probing; l.probing {
		return l.secrets.hide(l.pq.Listen(l.probe))
	}
	return l.secrets.hide(l.pq.Unlisten(l.probe))
}

// Close ends the connection and waits for pq to be done with it.
func (l *listener) Close(ctx context.Context) {
	l.hangUp()
	_ = l.pq.Close() // an error says that it was closed already
	for {
		select {
		case _, more := <-l.pq.NotificationChannel(): // what nobody takes would hold it up
			if !more {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// Dial implements pq.Dialer.
func (l *listener) Dial(network, address string) (net.Conn, error) {
	return l.DialContext(context.Background(), network, address)
}

// DialTimeout implements pq.Dialer.
func (l *listener) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return l.DialContext(ctx, network, address)
}

// dialTimeout is for servers that do not answer at all; of several hosts the next is tried.
const dialTimeout = 4 * time.Second

// DialContext implements pq.DialerContext.
func (l *listener) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hungUp {
		_ = conn.Close() // nothing was sent
		return nil, net.ErrClosed
	}
	l.conn = conn
	return conn, nil
}

// hangUp closes the connection for good.
func (l *listener) hangUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hungUp = true
	if l.conn != nil {
		_ = l.conn.Close() // an error says that it was closed already
	}
}
