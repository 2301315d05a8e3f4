package robust_test

import (
	"fmt"
	"maps"
	"net"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/internal/faults"
)

// target is a database: a DSN in its parts.
type target struct {
	User, Password, Addr, Database string
	Params                         map[string]string
}

// targetOf takes a DSN apart, in whichever form it is.
func targetOf(t *testing.T, dsn string) target {
	t.Helper()
	cfg, err := pgconn.ParseConfig(dsn)
	require.NoError(t, err)
	return target{
		User: cfg.User, Password: cfg.Password, Database: cfg.Database,
		Addr: net.JoinHostPort(cfg.Host, fmt.Sprint(cfg.Port)), Params: map[string]string{"sslmode": "disable"},
	}
}

func (d target) dsn() string {
	params := url.Values{}
	for k, v := range d.Params {
		params.Set(k, v)
	}
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(d.User, d.Password), Host: d.Addr, Path: "/" + d.Database,
		RawQuery: params.Encode(),
	}
	return u.String()
}

// with is the same database with more parameters.
func (d target) with(params map[string]string) target {
	d.Params = maps.Clone(d.Params)
	maps.Copy(d.Params, params)
	return d
}

// as is the same database for another user.
func (d target) as(user, password string) target {
	d.User, d.Password = user, password
	return d
}

// via is the same database behind a proxy, which ends with the test.
func (d target) via(t *testing.T) (target, *faults.Proxy) {
	t.Helper()
	p, err := faults.NewPostgresProxy(d.Addr)
	require.NoError(t, err)
	t.Cleanup(p.Close)
	d.Addr = p.Addr()
	return d, p
}
