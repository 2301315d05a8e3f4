package pgtest

import (
	"context"
	"crypto/rand"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// What the environment may say about the database for tests.
const (
	// EnvDSN names a database to test on: a connection string whose user may create schemas.
	EnvDSN = "STINT_TEST_POSTGRES"

	// EnvBin names the folder of the server binaries that throw-away clusters are made from.
	EnvBin = "STINT_TEST_POSTGRES_BIN"
)

// shared is the process's cluster, made by the first test that asks. Nobody stops it: its keeper does, when the
// process ends. It is package state because tests have nothing else in common.
var shared = sync.OnceValues(func() (*Server, error) { return start(created(Options{})) })

// DSN returns the connection string of the database that the tests of this process share, a URL unless
// [EnvDSN] says otherwise. It fails the test if there is none. May be called concurrently.
func DSN(t testing.TB) string {
	t.Helper()
	if dsn := os.Getenv(EnvDSN); dsn != "" {
		return dsn
	}
	s, err := shared()
	if err != nil {
		t.Fatalf("pgtest: no Postgres to test on: %s names no database, and none could be started: %v", EnvDSN, err)
	}
	return s.DSN()
}

// schemaPrefix marks the schemas that a test process which was killed left behind in somebody's database.
const schemaPrefix = "stint_test_"

// Schema returns the name of a schema that no other test uses: lower-case letters, digits and underscores, at most
// 40 bytes. It does not exist yet. When the test ends it is dropped with all that is in it, through exec, the test's
// own way to its database: open that before, so that it is closed after.
func Schema(t testing.TB, exec func(ctx context.Context, sql string) error) string {
	t.Helper()
	name := schemaPrefix + strings.ToLower(rand.Text())
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := exec(ctx, "drop schema if exists "+name+" cascade"); err != nil {
			t.Errorf("pgtest: drop schema %s: %v", name, err)
		}
	})
	return name
}
