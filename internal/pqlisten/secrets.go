package pqlisten

import (
	"errors"
	"net/url"
	"strings"

	"github.com/lib/pq"

	"github.com/stintmq/stint/core"
)

// secrets are what errors must not show.
type secrets struct{ words []string }

// secretsOf reads a DSN. What is wrong with one that can't be read stays unsaid: such errors quote it.
func secretsOf(dsn string) (*secrets, error) {
	cfg, err := pq.NewConfig(dsn)
	if err != nil {
		return nil, &core.InvalidError{Field: "DSN", Reason: "is not a connection string that lib/pq takes"}
	}
	s := &secrets{words: []string{dsn}}
	if cfg.Password != "" {
		s.words = append(s.words, cfg.Password, url.QueryEscape(cfg.Password), url.PathEscape(cfg.Password))
	}
	return s, nil
}

// hide returns err, or what may be said of it.
func (s *secrets) hide(err error) error {
	if err == nil {
		return nil
	}
	for _, word := range s.words {
		if strings.Contains(err.Error(), word) {
			return errors.New("stint: the connection that listens failed; the error quotes the DSN and is not shown")
		}
	}
	return err
}
