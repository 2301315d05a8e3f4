package faults

import (
	"bytes"
	"net"
	"sync"
)

// Proxy passes TCP connections on to a server until it is told to do harm. Its methods may be called concurrently.
type Proxy struct {
	target   string
	answered func(reply []byte) bool
	reader   func() matcher // for one client
	listener net.Listener

	mu     sync.Mutex
	conns  map[*Conn]struct{}
	rules  []*rule
	refuse bool // new connections are reset
	hold   bool // new connections are stalled
	closed bool
	work   sync.WaitGroup
}

// NewProxy listens on a port of its own of 127.0.0.1 and passes connections on to target, a host and port. answered
// says from the bytes that came back since a request whether the server is done with it, for rules that cut After;
// nil: any byte will do. Close ends the proxy.
func NewProxy(target string, answered func(reply []byte) bool) (*Proxy, error) {
	return newProxy(target, answered, func() matcher { return &letters{} })
}

// NewPostgresProxy is NewProxy in front of Postgres, without TLS.
func NewPostgresProxy(target string) (*Proxy, error) {
	return newProxy(target, PostgresReady, func() matcher { return &statements{} })
}

func newProxy(target string, answered func(reply []byte) bool, reader func() matcher) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	if answered == nil {
		answered = func(reply []byte) bool { return len(reply) > 0 }
	}
	p := &Proxy{target: target, answered: answered, reader: reader, listener: listener, conns: make(map[*Conn]struct{})}
	p.work.Go(p.accept)
	return p, nil
}

// PostgresReady reports whether a reply holds the message by which Postgres says that it is done with a request:
// ReadyForQuery, which it sends once the request's transaction, if it was one of its own, is committed. What comes
// before, rows and CommandComplete, may be sent earlier. A question about who the client is ends a request, too.
func PostgresReady(reply []byte) bool {
	return bytes.HasPrefix(reply, []byte("R")) || bytes.Contains(reply, []byte("Z\x00\x00\x00\x05"))
}

// Addr is the host and port to connect to.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Close resets all connections, stops listening and waits for its goroutines. It may be repeated.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	_ = p.listener.Close() // nobody is left to be told
	p.Cut()
	p.work.Wait()
}

// Conns are the connections that are open, in no order.
func (p *Proxy) Conns() []*Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]*Conn, 0, len(p.conns))
	for c := range p.conns {
		list = append(list, c)
	}
	return list
}

// Cut resets every open connection, on both sides, and returns how many there were. New ones may come.
func (p *Proxy) Cut() int {
	conns := p.Conns()
	for _, c := range conns {
		c.Cut()
	}
	return len(conns)
}

// Stall stops the bytes of every open connection, both ways, and leaves it open: what a network does that drops
// packets. Connections made later flow. Heal lets them go on.
func (p *Proxy) Stall() {
	for _, c := range p.Conns() {
		c.Stall()
	}
}

// Refuse has new connections reset as soon as they are made, until Heal. Open ones go on.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = true
}

// Blackhole is Stall for the open connections and for those to come, until Heal: they are accepted, and never
// answered.
func (p *Proxy) Blackhole() {
	p.mu.Lock()
	p.hold = true
	p.mu.Unlock()
	p.Stall()
}

// Heal ends Stall, Blackhole and Refuse. What a stalled connection was sent meanwhile arrives now.
func (p *Proxy) Heal() {
	p.mu.Lock()
	p.refuse, p.hold = false, false
	p.mu.Unlock()
	for _, c := range p.Conns() {
		c.heal()
	}
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.work.Go(func() { p.serve(client) })
	}
}

// serve passes one connection on until either side ends it.
func (p *Proxy) serve(client net.Conn) {
	c := &Conn{proxy: p, client: client}
	c.moved.L = &c.mu
	p.mu.Lock()
	refused := p.refuse || p.closed
	c.stalled = p.hold
	p.mu.Unlock()
	if refused {
		reset(client)
		return
	}
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		reset(client)
		return
	}
	c.server = server
	if !p.add(c) {
		c.Cut()
		return
	}
	var back sync.WaitGroup
	back.Go(c.replies)
	c.requests()
	back.Wait()
	if c.doomed != nil {
		c.doomed.strike()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

func (p *Proxy) add(c *Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.conns[c] = struct{}{}
	}
	return !p.closed
}
