package stinttest_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stintmq/stint/core"
)

// A small service, as an application would have it.

type user struct{ Mail string }

type receipt struct{ Letters int }

var (
	welcome  = core.NewJob[user, receipt]("welcome", core.JobOptions[user]{Queue: "mail", Key: func(u user) string { return u.Mail }})
	reminder = core.NewTask[user]("reminder", core.JobOptions[user]{Queue: "mail", MaxAttempts: 3, Backoff: core.Exponential(time.Second, 2, time.Minute)})
)

type shop struct {
	jobs    core.Store
	sent    []string
	offline int // how many letters fail
}

// signUp writes nothing of its own, but for a job now and one for tomorrow.
func (s *shop) signUp(ctx context.Context, mail string) error {
	if _, err := welcome.Enqueue(ctx, s.jobs, user{mail}); err != nil {
		return err
	}
	_, err := reminder.Enqueue(ctx, s.jobs, user{mail}, core.Delay(24*time.Hour))
	return err
}

func (s *shop) handle(w *core.Worker) {
	welcome.Handle(w, func(_ context.Context, u user) (receipt, error) {
		err := s.send("welcome " + u.Mail)
		return receipt{len(s.sent)}, err
	})
	reminder.Handle(w, func(_ context.Context, u user) error { return s.send("remember " + u.Mail) })
}

var errOffline = errors.New("mail server is offline")

func (s *shop) send(letter string) error {
	if s.offline > 0 {
		s.offline--
		return fmt.Errorf("sending: %w", errOffline)
	}
	s.sent = append(s.sent, letter)
	return nil
}
