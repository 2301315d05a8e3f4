package core

import (
	"context"
	"log/slog"
)

// isolate makes a logger's handler safe to call from the worker's loops: a panic or runtime.Goexit in it is the
// user's bug and must not end a heartbeat (Q19). nil discards.
func isolate(l *slog.Logger) slog.Handler {
	if l == nil {
		return slog.DiscardHandler
	}
	return isolated{l.Handler()}
}

type isolated struct{ slog.Handler }

// apart runs user code on a goroutine of its own, which is all that can stop runtime.Goexit, and waits for it.
func apart(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		f()
	}()
	<-done
}

func (h isolated) Enabled(ctx context.Context, level slog.Level) (enabled bool) {
	apart(func() { enabled = h.Handler.Enabled(ctx, level) })
	return enabled
}

func (h isolated) Handle(ctx context.Context, r slog.Record) (err error) {
	apart(func() { err = h.Handler.Handle(ctx, r) })
	return err
}

func (h isolated) WithAttrs(attrs []slog.Attr) slog.Handler {
	return isolated{h.Handler.WithAttrs(attrs)}
}

func (h isolated) WithGroup(name string) slog.Handler {
	return isolated{h.Handler.WithGroup(name)}
}
