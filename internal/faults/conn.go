package faults

import (
	"net"
	"sync"
)

// Conn is one connection through a Proxy. Its methods may be called concurrently.
type Conn struct {
	proxy          *Proxy
	client, server net.Conn

	mu      sync.Mutex
	moved   sync.Cond // stalled or over changed
	stalled bool
	over    bool
	doomed  *rule  // cut once the request under way is answered
	reply   []byte // to that request
}

// Cut resets the connection on both sides: each learns at once, and neither what became of its last words.
func (c *Conn) Cut() { c.end(reset) }

// Stall stops the bytes both ways, without a word to either side, until Proxy.Heal.
func (c *Conn) Stall() { c.setStalled(true) }

// ServerSide is the address by which the server knows the connection.
func (c *Conn) ServerSide() string { return c.server.LocalAddr().String() }

func (c *Conn) heal() { c.setStalled(false) }

func (c *Conn) setStalled(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stalled = on
	c.moved.Broadcast()
}

// end closes both sides, once.
func (c *Conn) end(how func(net.Conn)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	c.over = true
	c.moved.Broadcast()
	how(c.client)
	how(c.server)
}

// pass waits while the connection is stalled, and reports false when it is over.
func (c *Conn) pass() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.stalled && !c.over {
		c.moved.Wait()
	}
	return !c.over
}

// chunk is what is read at once. A request that fits and is written at once is read at once, most likely; rules don't
// depend on it.
const chunk = 64 << 10

// requests passes on what the client says.
func (c *Conn) requests() {
	defer c.end(hangUp)
	buf := make([]byte, chunk)
	seen := c.proxy.reader()
	for {
		n, err := c.client.Read(buf)
		if n > 0 {
			if !c.pass() {
				return
			}
			if r := c.proxy.match(seen, buf[:n]); r != nil {
				if r.Moment == Before {
					c.Cut()
					r.strike()
					return
				}
				c.mu.Lock()
				c.doomed, c.reply = r, nil
				c.mu.Unlock()
			}
			if _, err := c.server.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// replies passes on what the server answers.
func (c *Conn) replies() {
	defer c.end(hangUp)
	buf := make([]byte, chunk)
	for {
		n, err := c.server.Read(buf)
		if n > 0 {
			if !c.pass() {
				return
			}
			doomed, answered := c.answer(buf[:n])
			if answered {
				c.Cut()
				doomed.strike()
				return
			}
			if doomed == nil {
				if _, err := c.client.Write(buf[:n]); err != nil {
					return
				}
			}
		}
		if err != nil {
			return
		}
	}
}

// answer keeps what belongs to a request whose reply nobody will see.
func (c *Conn) answer(data []byte) (doomed *rule, answered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.doomed == nil {
		return nil, false
	}
	c.reply = append(c.reply, data...)
	return c.doomed, c.proxy.answered(c.reply)
}

func hangUp(c net.Conn) { _ = c.Close() } // whatever it says, it is closed

// reset closes without a farewell: the other side gets RST.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // then it is closed with one
	}
	_ = c.Close()
}
