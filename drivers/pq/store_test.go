package pqstore_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lib/pq"
	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	pqstore "github.com/stintmq/stint/drivers/pq"
	"github.com/stintmq/stint/internal/pgstore/pgstoretest"
)

// database returns a database that closes with the test.
func database(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("postgres", dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// open returns a store that closes with the test.
func open(t testing.TB, db *sql.DB, opts pqstore.Options) *pqstore.Store {
	t.Helper()
	s, err := pqstore.New(db, opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// lossy dials connections to the server. Once told to, it loses the reply to the next statement that inserts or leases a
// job: the statement arrives, its connection ends.
type lossy struct {
	lose atomic.Bool
	hits atomic.Int64
}

func (l *lossy) Dial(network, address string) (net.Conn, error) {
	conn, err := net.Dial(network, address)
	return &lossyConn{Conn: conn, l: l}, err
}

func (l *lossy) DialTimeout(network, address string, _ time.Duration) (net.Conn, error) {
	return l.Dial(network, address)
}

type lossyConn struct {
	net.Conn
	l    *lossy
	dead bool
}

func (c *lossyConn) Write(b []byte) (int, error) {
	// Bind and Execute in one write is a statement with a mark of ours among its arguments.
	if bytes.Contains(b, []byte("lost-reply")) && c.l.lose.Load() {
		c.l.hits.Add(1)
		c.dead = true
	}
	return c.Conn.Write(b)
}

func (c *lossyConn) Read(b []byte) (int, error) {
	if !c.dead {
		return c.Conn.Read(b)
	}
	_, _ = c.Conn.Read(b) // the reply: it was done
	_ = c.Close()
	return 0, io.EOF
}

// TestLostReplyIsNotRepeated: a statement whose reply is lost is not sent on another connection. The caller is told
// that nobody knows, and the job is there once, or leased once.
func TestLostReplyIsNotRepeated(t *testing.T) {
	connector, err := pq.NewConnector(dsn(t, "", ""))
	require.NoError(t, err)
	l := &lossy{}
	connector.Dialer(l)
	db := sql.OpenDB(connector)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	s := open(t, db, pqstore.Options{Schema: kit.Schema(t)})
	ctx := context.Background()
	for range 5 { // statements are prepared, and connections fresh
		pgstoretest.Enqueue(t, s, pgstoretest.Request("job"))
		pgstoretest.AckAll(t, s, pgstoretest.Take(t, s, 1))
	}

	l.lose.Store(true)
	lost := pgstoretest.Request("job")
	lost.Payload = []byte("lost")
	lost.Metadata = map[string]string{"lost-reply": "1"}
	_, err = s.Enqueue(ctx, []core.EnqueueRequest{lost})
	require.ErrorIs(t, err, core.ErrUnknown)
	require.EqualValues(t, 1, l.hits.Load())
	counts, err := s.Counts(ctx, "q")
	require.NoError(t, err)
	require.EqualValues(t, 1, counts[core.StateWaiting])

	for range 9 {
		pgstoretest.Enqueue(t, s, pgstoretest.Request("job"))
	}
	_, err = s.Claim(ctx, core.ClaimRequest{Wants: []core.Want{{Queue: "q", Names: []string{"job"}, Limit: 2}},
		Token: core.NewToken(), Lease: time.Minute, Worker: "lost-reply"})
	require.ErrorIs(t, err, core.ErrUnknown)
	require.EqualValues(t, 2, l.hits.Load())
	counts, err = s.Counts(ctx, "q")
	require.NoError(t, err)
	require.EqualValues(t, 2, counts[core.StateActive])
}

// TestPollOnly: without a DSN nothing listens, and this process's own news wake all the same.
func TestPollOnly(t *testing.T) {
	s := open(t, database(t, dsn(t, "", "")), pqstore.Options{Schema: kit.Schema(t)})
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	since := pgstoretest.Claim(t, s, 1, "job").Wake
	short, stop := context.WithTimeout(ctx, 50*time.Millisecond)
	defer stop()
	_, err := s.AwaitWake(short, []string{"q"}, since)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	woken := make(chan error, 1)
	go func() {
		_, err := s.AwaitWake(ctx, []string{"q"}, since)
		woken <- err
	}()
	pgstoretest.Enqueue(t, s, pgstoretest.Request("job"))
	require.NoError(t, <-woken)
	require.Empty(t, kit.Listeners(t))
	require.Len(t, pgstoretest.Claim(t, s, 1, "job").Jobs, 1)
}

// TestSecretsStayHidden: neither errors nor logs nor anything printed shows what a DSN holds.
func TestSecretsStayHidden(t *testing.T) {
	db := database(t, dsn(t, "", ""))
	const secret = "s3cret"
	for _, bad := range []string{"postgres://me:" + secret + "@host:port/", "postgres://me:" + secret + "@[::1/x", "password=" + secret + " 'x"} {
		_, err := pqstore.New(db, pqstore.Options{DSN: bad})
		var invalid *core.InvalidError
		require.ErrorAs(t, err, &invalid)
		require.NotContains(t, err.Error(), secret)
	}
	for _, bad := range []string{"postgres://me:" + secret + "%et@host/", "postgres://me:" + secret + "@host:1x/", "postgres://me:" + secret + "/@host/",
		"me:" + secret + "@localhost/x", "host=x password=my " + secret, "password='" + secret, `password=x\`, "connect_timeout=" + secret} {
		misread, err := sql.Open("postgres", bad) // lib/pq reads it when it connects
		require.NoError(t, err)
		_, err = pqstore.New(misread, pqstore.Options{})
		for _, err := range []error{err, pqstore.Migrate(t.Context(), misread, "")} {
			var invalid *core.InvalidError
			require.ErrorAs(t, err, &invalid, bad)
			require.NotErrorIs(t, err, core.ErrUnavailable)
			require.NotContains(t, err.Error(), secret)
		}
		require.NoError(t, misread.Close())
	}
	var said lockedBuffer
	opts := pqstore.Options{DSN: "postgres://me:" + secret + "@127.0.0.1:1/x?sslmode=disable&connect_timeout=1", Schema: kit.Schema(t),
		Logger: slog.New(slog.NewTextHandler(&said, nil))}
	s := open(t, db, opts)
	pgstoretest.Claim(t, s, 1, "job")
	require.Eventually(t, func() bool { return strings.Contains(said.String(), "wake channel is down") }, 10*time.Second, time.Millisecond)
	for _, text := range []string{said.String(), fmt.Sprintf("%v %+v %#v", opts, opts, opts), fmt.Sprintf("%v %+v %#v", s, s, s)} {
		require.NotContains(t, text, secret)
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestTransactionsStarveNobody: an application's transactions hold every connection that db allows, and claims, acks
// and heartbeats go on.
func TestTransactionsStarveNobody(t *testing.T) {
	db := database(t, dsn(t, "", ""))
	var invalid *core.InvalidError
	db.SetMaxOpenConns(5)
	_, err := pqstore.New(db, pqstore.Options{})
	require.ErrorAs(t, err, &invalid)
	db.SetMaxOpenConns(8)
	s := open(t, db, pqstore.Options{Schema: kit.Schema(t)})
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	pgstoretest.Enqueue(t, s, pgstoretest.Request("job"))
	held := pgstoretest.Take(t, s, 1)
	for db.Stats().InUse < 8 {
		tx, err := db.BeginTx(ctx, nil)
		require.NoError(t, err)
		defer func() { _ = tx.Rollback() }()
	}
	x, err := s.Extend(ctx, held, time.Minute)
	require.NoError(t, err)
	require.Equal(t, core.Extended{}, x)
	pgstoretest.AckAll(t, s, held)
}
