package bunstore

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// wired returns a wire and the server's end of it.
func wired(t *testing.T) (*wire, net.Conn) {
	client, server := net.Pipe()
	t.Cleanup(func() { require.NoError(t, errors.Join(client.Close(), server.Close())) })
	return &wire{net: client, rd: bufio.NewReaderSize(client, maxMessage)}, server
}

// message is a message of the server's.
func message(kind byte, body string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(4+len(body))), body...)
}

func notify(payload string) []byte {
	return message(notification, "\x00\x00\x00\x01channel\x00"+payload+"\x00")
}

// send writes in the background; what nobody reads ends with the connection.
func send(server net.Conn, parts ...[]byte) {
	go func() {
		for _, p := range parts {
			if _, err := server.Write(p); err != nil {
				return
			}
		}
	}()
}

// TestWireReads: notifications between all that a server may say, the longest too, and none twice.
func TestWireReads(t *testing.T) {
	w, server := wired(t)
	ctx := context.Background()
	long := strings.Repeat("x", 7999)
	send(server, message(notice, "SNOTICE\x00Mhello\x00\x00"), notify("a"), message(parameter, "TimeZone\x00UTC\x00"),
		message(ready, "I"), append(notify(long), notify("b")...))
	for _, want := range []string{"a", long, "b"} {
		got, err := w.Next(ctx)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

// TestWireGoesOnAfterItsContext: half a message that had come when the context ended is not lost.
func TestWireGoesOnAfterItsContext(t *testing.T) {
	w, server := wired(t)
	whole := notify("payload")
	for _, cut := range []int{0, 1, 4, 5, 9, len(whole) - 1} {
		ctx, cancel := context.WithCancel(context.Background())
		halves := make(chan error, 1)
		go func() {
			_, err := server.Write(whole[:cut])
			cancel()
			halves <- err
		}()
		_, err := w.Next(ctx)
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, <-halves)
		send(server, whole[cut:])
		got, err := w.Next(context.Background())
		require.NoError(t, err)
		require.Equal(t, "payload", got)
	}
	ended, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_, err := w.Next(ended)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, w.Ping(ended), context.DeadlineExceeded)
}

// TestWirePing: what comes before the answer is not lost.
func TestWirePing(t *testing.T) {
	w, server := wired(t)
	asked := make(chan []byte, 1)
	go func() {
		b := make([]byte, 5)
		_, _ = server.Read(b) // the test looks at b
		asked <- b
		send(server, notify("1"), notify("2"), message(ready, "I"), notify("3"))
	}()
	require.NoError(t, w.Ping(context.Background()))
	require.Equal(t, []byte{'S', 0, 0, 0, 4}, <-asked)
	for _, want := range []string{"1", "2", "3"} {
		got, err := w.Next(context.Background())
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

// TestWireEnds: what is no message of a connection that listens ends it.
func TestWireEnds(t *testing.T) {
	for name, c := range map[string]struct {
		said []byte
		want string
	}{
		"the server says why": {message(failure, "SFATAL\x00C57P01\x00Mterminating connection\x00\x00"), "terminating connection"},
		"it says nothing":     {message(failure, "\x00"), "does not say why"},
		"rows":                {message('D', "\x00\x00"), "unexpected"},
		"too long":            {[]byte{notification, 0, 1, 0, 0}, "65537 bytes"},
		"too short":           {[]byte{notification, 0, 0, 0, 3}, "4 bytes"},
		"text":                {[]byte(`payload of a message cut in half`), "bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			w, server := wired(t)
			send(server, c.said)
			_, err := w.Next(context.Background())
			require.ErrorContains(t, err, c.want)
		})
	}
	w, server := wired(t)
	require.NoError(t, server.Close())
	_, err := w.Next(context.Background())
	require.Error(t, err)
	require.Error(t, w.Ping(context.Background()))
}
