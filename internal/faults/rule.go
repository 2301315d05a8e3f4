package faults

import (
	"bytes"
	"sync"
)

// Rule says at which request to cut a connection.
type Rule struct {
	// Pattern is what the request contains, letter by letter; "": every write of a client is one. It is found across
	// reads, too: what was passed on before its last byte is no whole request.
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

// matcher remembers the end of what a client said last, for patterns that two reads share.
type matcher struct{ tail []byte }

// match returns the rule that strikes at these bytes, and takes it away.
func (p *Proxy) match(m *matcher, data []byte) *rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	longest := 0
	var hit *rule
	for i, r := range p.rules {
		longest = max(longest, len(r.Pattern))
		overlap := m.tail[max(0, len(m.tail)-max(len(r.Pattern)-1, 0)):]
		if !bytes.Contains(append(bytes.Clone(overlap), data...), []byte(r.Pattern)) {
			continue
		}
		if r.Skip > 0 {
			r.Skip--
			continue
		}
		hit = r
		p.rules = append(p.rules[:i:i], p.rules[i+1:]...)
		break
	}
	m.tail = append(m.tail, data...)
	if keep := max(longest-1, 0); len(m.tail) > keep {
		m.tail = bytes.Clone(m.tail[len(m.tail)-keep:])
	}
	return hit
}
