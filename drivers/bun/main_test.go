package bunstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/stintmq/stint/core"
	bunstore "github.com/stintmq/stint/drivers/bun"
	"github.com/stintmq/stint/internal/pgstore/pgstoretest"
)

// These make the test binary another process, that works on the file which they name.
const (
	openHere  = "BUNSTORE_TEST_OPEN"  // enqueues one job and is gone
	crashHere = "BUNSTORE_TEST_CRASH" // claims, says so, and works until it is killed
)

func TestMain(m *testing.M) {
	for name, work := range map[string]func(string) error{openHere: openAndEnqueue, crashHere: workUntilKilled} {
		path := os.Getenv(name)
		if path == "" {
			continue
		}
		if err := work(path); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(pgstoretest.Main(m, overPgdriver, overPgx, overPq))
}

func openAndEnqueue(path string) error {
	s, err := bunstore.OpenSQLite(path)
	if err != nil {
		return err
	}
	_, err = s.Enqueue(context.Background(), []core.EnqueueRequest{request("job")})
	return errors.Join(err, s.Close())
}

func open(t testing.TB, opts ...bunstore.Options) *bunstore.Store {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "jobs.db"), opts...)
}

func openAt(t testing.TB, path string, opts ...bunstore.Options) *bunstore.Store {
	t.Helper()
	s, err := bunstore.OpenSQLite(path, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func request(name string) core.EnqueueRequest {
	return core.EnqueueRequest{Name: name, Queue: "q", Payload: []byte(`{"n":1}`), MaxAttempts: 3, Backoff: core.DefaultBackoff()}
}

func claim(t testing.TB, s core.Store, limit int, names ...string) core.Claimed {
	t.Helper()
	got, err := s.Claim(context.Background(), core.ClaimRequest{
		Wants: []core.Want{{Queue: "q", Names: names, Limit: limit}},
		Token: core.NewToken(), Lease: time.Minute, Worker: "w",
	})
	require.NoError(t, err)
	return got
}

func enqueue(t testing.TB, s core.Enqueuer, reqs ...core.EnqueueRequest) []core.EnqueueResult {
	t.Helper()
	res, err := s.Enqueue(context.Background(), reqs)
	require.NoError(t, err)
	for _, r := range res {
		require.NoError(t, r.Err)
	}
	return res
}
