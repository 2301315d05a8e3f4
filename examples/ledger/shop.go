package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"github.com/uptrace/bun"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/journal"
)

const webhook = "webhook"

// webhookOptions suit a receiver as bad as ours. Nobody kills a real one's senders a thousand times.
var webhookOptions = journal.EffectOptions{
	MaxAttempts: 50, MaxStalls: 1000, Backoff: core.Exponential(20*time.Millisecond, 2, time.Second/2),
}

// shop is somebody else's server, who hears of transfers by webhook: it fails one time in three, and half of these times
// it has heard very well.
type shop struct {
	db     *bun.DB
	server *http.Server
	ended  chan error
	url    string
	client *http.Client
}

// received is a webhook that the shop has heard of. It would have a database of its own.
type received struct {
	bun.BaseModel `bun:"table:ledger_webhooks,alias:w"`

	ID    string `bun:",pk"`
	Times int64
}

func openShop(db *bun.DB) (*shop, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &shop{
		db: db, url: "http://" + l.Addr().String(), ended: make(chan error, 1),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers}, Timeout: 10 * time.Second},
	}
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go func() { s.ended <- s.server.Serve(l) }()
	return s, nil
}

func (s *shop) Close() error {
	s.client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := s.server.Shutdown(ctx)
	<-s.ended
	return err
}

// ServeHTTP counts a webhook, once for all of its repetitions.
func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	mood := rand.IntN(6)
	if mood == 0 {
		http.Error(w, "try again later", http.StatusServiceUnavailable)
		return
	}
	hook := &received{ID: r.Header.Get("Idempotency-Key"), Times: 1}
	_, err := s.db.NewInsert().Model(hook).On("CONFLICT (id) DO UPDATE").Set("times = w.times + 1").Exec(r.Context())
	if err != nil || mood == 1 {
		http.Error(w, "something went wrong", http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// post is the effect. What fails is tried again by the queue, under the same id.
func (s *shop) post(ctx context.Context, e journal.Event[Transfer], call journal.Call[bun.Tx]) error {
	body, err := json.Marshal(e.Payload)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Idempotency-Key", call.JobID)
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close() // it was read to its end
	if err == nil && resp.StatusCode != http.StatusNoContent {
		err = fmt.Errorf("the shop says %s", resp.Status)
	}
	return err
}
