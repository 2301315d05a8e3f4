package faults

import (
	"bytes"
	"sync"
)

// Rule says at which request to cut a connection.
type Rule struct {
	// Pattern is what the request contains, letter by letter; "": every write of a client is one. It is found across
	// reads, too: what was passed on before its last byte is no whole request. To Postgres (NewPostgresProxy) it is what
	// the SQL contains that the request runs, sent with it or prepared before, with a NUL at its end.
	Pattern string
	// Skip is how many matches of any connection to let pass first.
	Skip int
	// Moment is Before: cut instead of passing the request on; or After: pass it on, wait for the server's answer,
	// and cut instead of passing that on.
	Moment Moment
}

type rule struct {
	Rule
	struck chan struct{} // closed once the connection is cut
	strike func()        // closes it, once
}

// Arm sets a rule, which strikes once: the connection of that request is cut, its neighbours go on. The channel is
// closed when that happened, or when the connection ended by itself before its answer came. Several rules may be armed; the first that matches strikes.
func (p *Proxy) Arm(r Rule) (struck <-chan struct{}) {
	done := make(chan struct{})
	armed := &rule{Rule: r, struck: done, strike: sync.OnceFunc(func() { close(done) })}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, armed)
	return armed.struck
}

// Disarm forgets the rules that did not strike yet.
func (p *Proxy) Disarm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = nil
}

// matcher finds the requests of one client in what it says.
type matcher interface {
	// read takes what the client says next, and returns what finds a pattern in it.
	read(data []byte) (find func(pattern string) bool)
}

// match returns the rule that strikes at these bytes, and takes it away.
func (p *Proxy) match(m matcher, data []byte) *rule {
	find := m.read(data)
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, r := range p.rules {
		if r.Pattern != "" && !find(r.Pattern) {
			continue
		}
		if r.Skip > 0 {
			r.Skip--
			continue
		}
		p.rules = append(p.rules[:i:i], p.rules[i+1:]...)
		return r
	}
	return nil
}

// longest is how long a pattern may be that two reads share.
const longest = 4096

// letters are what any client says. They remember the end of what it said last.
type letters struct{ tail []byte }

func (l *letters) read(data []byte) func(string) bool {
	before := l.tail
	said := append(bytes.Clone(before), data...)
	l.tail = bytes.Clone(said[max(0, len(said)-longest):])
	return func(pattern string) bool {
		// Not what was found already.
		return bytes.Contains(said[max(0, len(before)-len(pattern)+1):], []byte(pattern))
	}
}
