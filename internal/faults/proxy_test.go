package faults_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/stintmq/stint/internal/faults"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answering is a server that answers each line with "did " and the line, and remembers what it did.
type answering struct {
	listener net.Listener
	work     sync.WaitGroup
	mu       sync.Mutex
	did      []string
}

func newAnswering(t *testing.T) *answering {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &answering{listener: l}
	s.work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.work.Go(func() { s.serve(c) })
		}
	})
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		s.work.Wait()
	})
	return s
}

func (s *answering) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	lines := bufio.NewScanner(c)
	for lines.Scan() {
		s.mu.Lock()
		s.did = append(s.did, lines.Text())
		s.mu.Unlock()
		if _, err := fmt.Fprintln(c, "did", lines.Text()); err != nil {
			return
		}
	}
}

func (s *answering) done() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.did...)
}

func proxied(t *testing.T, target string) *faults.Proxy {
	t.Helper()
	p, err := faults.NewProxy(target, func(reply []byte) bool { return strings.HasSuffix(string(reply), "\n") })
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p
}

// client talks to a server line by line.
type client struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func dial(t *testing.T, p *faults.Proxy) *client {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(10*time.Second)))
	return &client{t, c, bufio.NewReader(c)}
}

// attempt connects and says something. Who is refused may learn it at either.
func attempt(p *faults.Proxy) error {
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	_, err = (&client{conn: c, in: bufio.NewReader(c)}).ask("anybody there?")
	return err
}

func (c *client) ask(line string) (string, error) {
	if _, err := fmt.Fprintln(c.conn, line); err != nil {
		return "", err
	}
	answer, err := c.in.ReadString('\n')
	return strings.TrimSuffix(answer, "\n"), err
}

func (c *client) mustAsk(line string) {
	c.t.Helper()
	answer, err := c.ask(line)
	require.NoError(c.t, err)
	require.Equal(c.t, "did "+line, answer)
}

func TestProxyPassesOn(t *testing.T) {
	server := newAnswering(t)
	p := proxied(t, server.listener.Addr().String())
	a, b := dial(t, p), dial(t, p)
	a.mustAsk("one")
	b.mustAsk("two")
	require.Len(t, p.Conns(), 2)
	for _, c := range p.Conns() {
		require.Contains(t, c.ServerSide(), "127.0.0.1:")
	}
	require.NoError(t, a.conn.Close())
	require.Eventually(t, func() bool { return len(p.Conns()) == 1 }, 5*time.Second, time.Millisecond)
	b.mustAsk("three")
}

func TestProxyCuts(t *testing.T) {
	p := proxied(t, newAnswering(t).listener.Addr().String())
	c := dial(t, p)
	c.mustAsk("one")
	require.Equal(t, 1, p.Cut())
	_, err := c.ask("two")
	require.True(t, errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE), "%v", err)
	dial(t, p).mustAsk("three")
}

func TestProxyCutsAtARequest(t *testing.T) {
	for _, moment := range []faults.Moment{faults.Before, faults.After} {
		t.Run(moment.String(), func(t *testing.T) {
			server := newAnswering(t)
			p := proxied(t, server.listener.Addr().String())
			bystander, c := dial(t, p), dial(t, p)
			struck := p.Arm(faults.Rule{Pattern: "commit", Skip: 1, Moment: moment})
			c.mustAsk("commit 1")
			bystander.mustAsk("other")
			_, err := c.ask("commit 2")
			require.Error(t, err)
			<-struck
			want := []string{"commit 1", "other"}
			if moment == faults.After {
				want = append(want, "commit 2")
			}
			require.Equal(t, want, server.done())
			bystander.mustAsk("commit 3")
		})
	}
}

// TestPatternAcrossReads: a request may come in pieces.
func TestPatternAcrossReads(t *testing.T) {
	server := newAnswering(t)
	p := proxied(t, server.listener.Addr().String())
	c := dial(t, p)
	struck := p.Arm(faults.Rule{Pattern: "commit"})
	for _, piece := range []string{"co", "mm", "it\n"} {
		_, err := io.WriteString(c.conn, piece)
		require.NoError(t, err)
		require.NoError(t, c.conn.(*net.TCPConn).SetNoDelay(true))
	}
	<-struck
	_, err := c.in.ReadString('\n')
	require.Error(t, err)
	require.NotContains(t, server.done(), "commit")
}

func TestEveryWriteMatchesNothing(t *testing.T) {
	p := proxied(t, newAnswering(t).listener.Addr().String())
	c := dial(t, p)
	struck := p.Arm(faults.Rule{Skip: 2})
	c.mustAsk("one")
	c.mustAsk("two")
	_, err := c.ask("three")
	require.Error(t, err)
	<-struck
	p.Arm(faults.Rule{})
	p.Disarm()
	dial(t, p).mustAsk("four")
}

func TestProxyStallsAndHeals(t *testing.T) {
	server := newAnswering(t)
	p := proxied(t, server.listener.Addr().String())
	c := dial(t, p)
	c.mustAsk("one")
	p.Stall()
	require.NoError(t, c.conn.SetDeadline(time.Now().Add(50*time.Millisecond)))
	_, err := c.ask("two")
	var timeout net.Error
	require.ErrorAs(t, err, &timeout)
	require.True(t, timeout.Timeout(), "half-open: no word from the other side")
	dial(t, p).mustAsk("three") // new ones flow
	require.Equal(t, []string{"one", "three"}, server.done())
	p.Heal()
	require.NoError(t, c.conn.SetDeadline(time.Now().Add(10*time.Second)))
	answer, err := c.in.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "did two\n", answer)
}

func TestProxyRefuses(t *testing.T) {
	p := proxied(t, newAnswering(t).listener.Addr().String())
	old := dial(t, p)
	old.mustAsk("one")
	p.Refuse()
	require.Error(t, attempt(p))
	old.mustAsk("three")
	p.Heal()
	dial(t, p).mustAsk("four")
}

func TestBlackholeSwallowsNewConnectionsToo(t *testing.T) {
	p := proxied(t, newAnswering(t).listener.Addr().String())
	p.Blackhole()
	c := dial(t, p)
	require.NoError(t, c.conn.SetDeadline(time.Now().Add(50*time.Millisecond)))
	_, err := c.ask("one")
	require.Error(t, err)
	p.Heal()
	require.NoError(t, c.conn.SetDeadline(time.Now().Add(10*time.Second)))
	answer, err := c.in.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "did one\n", answer)
}

func TestCloseEndsStalledConnections(t *testing.T) {
	p := proxied(t, newAnswering(t).listener.Addr().String())
	c := dial(t, p)
	c.mustAsk("one")
	p.Stall()
	p.Close()
	_, err := c.ask("two")
	require.Error(t, err)
	p.Close()
}

func TestServerThatIsDown(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	require.Error(t, attempt(proxied(t, l.Addr().String())))
}

func TestPostgresReady(t *testing.T) {
	require.True(t, faults.PostgresReady([]byte("C\x00\x00\x00\x0dINSERT 0\x00Z\x00\x00\x00\x05I")))
	require.True(t, faults.PostgresReady([]byte("R\x00\x00\x00\x08\x00\x00\x00\x03")), "asks for a password")
	require.False(t, faults.PostgresReady([]byte("C\x00\x00\x00\x0dINSERT 0\x00")), "not committed yet, it may be")
}

// TestServerHangsUpInsteadOfAnswering: a rule that waits for an answer does not wait for ever.
func TestServerHangsUpInsteadOfAnswering(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	p := proxied(t, l.Addr().String())
	struck := p.Arm(faults.Rule{Moment: faults.After})
	c := dial(t, p)
	_, err = fmt.Fprintln(c.conn, "one")
	require.NoError(t, err)
	server, err := l.Accept()
	require.NoError(t, err)
	_, err = bufio.NewReader(server).ReadString('\n')
	require.NoError(t, err)
	require.NoError(t, server.Close())
	<-struck
}
