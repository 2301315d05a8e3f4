package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/stintmq/stint/core"
)

// logged is middleware: a line as a run begins, and one as it ends. It logs no payloads.
func logged(logger *slog.Logger) core.Middleware {
	return func(next core.HandlerFunc) core.HandlerFunc {
		return func(ctx context.Context, run core.Run, payload []byte) (result []byte, err error) {
			log := logger.With("job", run.Name, "id", run.ID, "attempt", run.Attempt)
			log.InfoContext(ctx, "run begins", "bytes", len(payload))
			began, returned := time.Now(), false
			defer func() {
				// Without recover: the worker is to see the panic where it was, and counts it as a failed attempt.
				if !returned {
					log.ErrorContext(ctx, "run panicked", "took", time.Since(began))
				}
			}()
			result, err = next(ctx, run, payload)
			returned = true
			if err != nil {
				log.WarnContext(ctx, "run failed", "took", time.Since(began), "error", err)
			} else {
				log.InfoContext(ctx, "run ends", "took", time.Since(began))
			}
			return result, err
		}
	}
}
