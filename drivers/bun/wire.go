package bunstore

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/stintmq/stint/internal/pgstore"
	"github.com/stintmq/stint/internal/pgwake"
	"github.com/stintmq/stint/internal/stdsql"
)

// pgdriver's own listener connects anew by itself, does not say when it listens, and does not see that a context ends.
// But its connections show the network below them, and what a server says to one that listens and asks nothing is a
// few kinds of message.

// network is what a driver's connection shows of itself.
type network interface{ Conn() net.Conn }

// showsNetwork reports whether db's connections do.
func showsNetwork(ctx context.Context, db *sql.DB) (shows bool, err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return false, err
	}
	err = conn.Raw(func(c any) error {
		_, shows = c.(network)
		return nil
	})
	return shows, errors.Join(err, conn.Close())
}

// listenOn takes connections of db, which listen.
func listenOn(db *sql.DB) pgstore.Listen {
	return func(ctx context.Context, channel string) (pgwake.Listener, error) {
		conn, err := stdsql.Working(ctx, db)
		if err != nil {
			return nil, err
		}
		w := &wire{conn: conn}
		if _, err = conn.ExecContext(ctx, `listen "`+channel+`"`); err == nil {
			err = conn.Raw(func(c any) error {
				n, ok := c.(network)
				if !ok {
					return fmt.Errorf("stint: %T shows no network connection", c)
				}
				w.net = n.Conn()
				w.rd = bufio.NewReaderSize(w.net, maxMessage)
				return w.net.SetDeadline(time.Time{}) // the driver left one
			})
		}
		if err == nil {
			// What the driver may have read beyond the reply was said before this is answered, and whoever waits looks
			// again after that.
			err = w.Ping(ctx)
		}
		if err != nil {
			w.Close(ctx)
			return nil, err
		}
		return w, nil
	}
}

// maxMessage is more than the longest notification that there is, of 8000 bytes.
const maxMessage = 16 << 10

// The messages, see https://www.postgresql.org/docs/current/protocol-message-formats.html.
const (
	syncUp       = 'S' // ours
	notification = 'A'
	ready        = 'Z'
	parameter    = 'S'
	notice       = 'N'
	failure      = 'E'
)

// wire is a connection that listens, and that the driver below it has nothing to do with any more.
type wire struct {
	conn  *sql.Conn
	net   net.Conn
	rd    *bufio.Reader
	heard []string // while a ping waited for its answer
}

// Next implements Listener.
func (w *wire) Next(ctx context.Context) (payload string, err error) {
	if len(w.heard) > 0 {
		payload, w.heard = w.heard[0], w.heard[1:]
		return payload, nil
	}
	for {
		kind, payload, err := w.read(ctx)
		if err != nil || kind == notification {
			return payload, err
		}
	}
}

// Ping implements Listener.
func (w *wire) Ping(ctx context.Context) error {
	defer w.until(ctx)()
	if _, err := w.net.Write([]byte{syncUp, 0, 0, 0, 4}); err != nil {
		return w.because(ctx, err)
	}
	for {
		kind, payload, err := w.read(ctx)
		switch {
		case err != nil:
			return err
		case kind == notification:
			w.heard = append(w.heard, payload)
		case kind == ready:
			return nil
		}
	}
}

// Close implements Listener.
func (w *wire) Close(context.Context) { stdsql.Discard(w.conn) }

// read waits for a message. When ctx ends, what has come of one stays where it is.
func (w *wire) read(ctx context.Context) (kind byte, payload string, err error) {
	defer w.until(ctx)()
	head, err := w.rd.Peek(5)
	if err != nil {
		return 0, "", w.because(ctx, err)
	}
	kind = head[0]
	size := 1 + int64(binary.BigEndian.Uint32(head[1:])) // counts itself, and not the kind
	if size < 5 || size > maxMessage {
		return 0, "", fmt.Errorf("stint: a message %q of %d bytes on the connection that listens", kind, size)
	}
	message, err := w.rd.Peek(int(size))
	if err != nil {
		return 0, "", w.because(ctx, err)
	}
	body := message[5:]
	switch kind {
	case notification: // the sender's process, channel, payload
		if parts := bytes.SplitN(body[min(4, len(body)):], []byte{0}, 3); len(parts) == 3 {
			payload = string(parts[1])
		}
	case failure:
		err = fmt.Errorf("stint: the server ended the connection: %s", saying(body))
	case ready, parameter, notice:
	default:
		err = fmt.Errorf("stint: an unexpected message %q on the connection that listens", kind)
	}
	_, _ = w.rd.Discard(int(size)) // it is in the buffer
	return kind, payload, err
}

// saying is the text in an error, whose fields begin with their kind.
func saying(body []byte) string {
	for field := range bytes.SplitSeq(body, []byte{0}) {
		if len(field) > 0 && field[0] == 'M' {
			return string(field[1:])
		}
	}
	return "it does not say why"
}

// until has reads and writes fail when ctx ends; what it returns undoes that.
func (w *wire) until(ctx context.Context) (undo func()) {
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = w.net.SetDeadline(time.Unix(1, 0)) // fails when it is closed
		close(ended)
	})
	return func() {
		if !stop() {
			<-ended
			_ = w.net.SetDeadline(time.Time{})
		}
	}
}

// because is ctx's error, if that is why err came.
func (w *wire) because(ctx context.Context, err error) error {
	var timeout net.Error
	if ctx.Err() != nil && errors.As(err, &timeout) && timeout.Timeout() {
		return ctx.Err()
	}
	return err
}
