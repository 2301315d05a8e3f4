package pgsql

import (
	"errors"
	"time"

	"github.com/stintmq/stint/core"
)

// arguments are those of sqlInsert. numbers nil: they are drawn.
func (e *enqueueing) arguments(reqs []*core.EnqueueRequest, numbers []int64, patience any) ([]any, error) {
	n := len(reqs)
	ids, names, queues := make([]string, n), make([]string, n), make([]string, n)
	for k, req := range reqs {
		ids[k], names[k], queues[k] = req.ResolvedID(), req.Name, req.Queue
	}
	c, err := contentOf(reqs)
	if err != nil {
		return nil, err
	}
	return []any{e.s.now, shared(ids), shared(names), shared(queues), shared(c.priority), c.payload, shared(c.metadata),
		shared(c.maxAttempts), shared(c.maxStalls), shared(c.timeout), shared(c.backoff), shared(c.keep), shared(c.trace),
		shared(c.delay), shared(c.runAt), e.notify.channel(), e.notify.Origin, patience, numbers}, nil
}

// content is what a replace changes of jobs, as arguments.
type content struct {
	metadata, backoff, keep, trace []string
	priority                       []int16
	payload                        [][]byte
	maxAttempts, maxStalls         []int32
	timeout, delay                 []int64
	runAt                          []time.Time
}

func contentOf(reqs []*core.EnqueueRequest) (*content, error) {
	n := len(reqs)
	c := &content{
		metadata: make([]string, n), backoff: make([]string, n), keep: make([]string, n), trace: make([]string, n),
		priority: make([]int16, n), payload: make([][]byte, n), maxAttempts: make([]int32, n), maxStalls: make([]int32, n),
		timeout: make([]int64, n), delay: make([]int64, n), runAt: make([]time.Time, n),
	}
	var last core.Backoff
	var lastText string
	for k, req := range reqs {
		c.priority[k], c.payload[k] = int16(req.Priority), req.Payload
		c.maxAttempts[k], c.maxStalls[k] = int32(req.MaxAttempts), int32(req.MaxStalls)
		c.timeout[k], c.delay[k], c.runAt[k] = int64(req.Timeout), micros(req.Delay), core.Micros(req.RunAt)
		if req.Backoff != last {
			last, lastText = req.Backoff, backoffText(req.Backoff)
		}
		c.backoff[k] = lastText
		var err1, err2, err3 error
		c.metadata[k], err1 = doc(req.Metadata, len(req.Metadata) == 0)
		c.keep[k], err2 = doc(req.Keep, req.Keep == core.Keep{})
		c.trace[k], err3 = doc(req.Trace, req.Trace == nil)
		if err := errors.Join(err1, err2, err3); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// shared is the list, or its first element where all are alike.
func shared[T comparable](list []T) []T {
	for _, v := range list {
		if v != list[0] {
			return list
		}
	}
	return list[:1]
}
