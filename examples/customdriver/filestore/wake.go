package filestore

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/stintmq/stint/core"
)

// wakes remembers when each queue last had news (Q15). It belongs to whoever has the store's turn, and is not kept
// in the file: with one process at a time there is nobody else to wake.
type wakes struct {
	epoch   string // of this handle: a token from before a restart is unreadable, which means "at once"
	last    int64
	queues  map[string]int64
	changed chan struct{} // closed, and replaced, by every raise
}

func newWakes() wakes {
	return wakes{epoch: core.NewToken(), queues: map[string]int64{}, changed: make(chan struct{})}
}

func (w *wakes) token() core.WakeToken {
	return core.WakeToken(fmt.Sprintf("%s/%d", w.epoch, w.last))
}

// raise wakes everybody to look whether it is their queue that has news.
func (w *wakes) raise(queues ...string) {
	w.last++
	for _, q := range queues {
		w.queues[q] = w.last
	}
	close(w.changed)
	w.changed = make(chan struct{})
}

// since reports whether one of the queues had news after the token's moment.
func (w *wakes) since(token core.WakeToken, queues []string) bool {
	number, ours := strings.CutPrefix(string(token), w.epoch+"/")
	moment, err := strconv.ParseInt(number, 10, 64)
	if !ours || err != nil {
		return true
	}
	for _, q := range queues {
		if w.queues[q] > moment {
			return true
		}
	}
	return false
}

// AwaitWake waits for news of the queues (Q15). Control is never set: it announces cancels, which need an Admin.
func (s *Store) AwaitWake(ctx context.Context, queues []string, since core.WakeToken) (core.Wake, error) {
	for {
		if err := s.enter(ctx); err != nil {
			return core.Wake{}, err
		}
		news, token, changed := s.wakes.since(since, queues), s.wakes.token(), s.wakes.changed
		s.leave()
		if news {
			return core.Wake{Token: token}, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return core.Wake{}, ctx.Err()
		}
	}
}
