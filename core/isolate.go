package core

import (
	"context"
	"log/slog"
)

// isolate makes a logger's handler safe to call from the worker's loops: a panic in it is the user's bug and
// must not end a heartbeat (Q19). nil discards.
func isolate(l *slog.Logger) slog.Handler {
	if l == nil {
		return slog.DiscardHandler
	}
	return isolated{l.Handler()}
}

type isolated struct{ slog.Handler }

func (h isolated) Handle(ctx context.Context, r slog.Record) (err error) {
	defer func() { _ = recover() }()
	return h.Handler.Handle(ctx, r)
}

func (h isolated) WithAttrs(attrs []slog.Attr) slog.Handler {
	return isolated{h.Handler.WithAttrs(attrs)}
}

func (h isolated) WithGroup(name string) slog.Handler {
	return isolated{h.Handler.WithGroup(name)}
}
