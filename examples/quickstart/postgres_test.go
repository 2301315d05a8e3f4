package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/internal/pgtest"
)

// postgresStore is a -store on the tests' server, in a schema of its own.
func postgresStore(t *testing.T) string {
	t.Helper()
	dsn := pgtest.DSN(t)
	schema := pgtest.Schema(t, func(ctx context.Context, sql string) error { return execPostgres(ctx, dsn, sql) })
	u, err := url.Parse(dsn)
	if err != nil || u.Scheme == "" {
		return "postgres:" + dsn + " search_path=" + schema // key=value words
	}
	q := u.Query()
	q.Set("search_path", schema)
	u.RawQuery = q.Encode()
	return u.String()
}

func execPostgres(ctx context.Context, dsn, sql string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, sql)
	return err
}

func TestPasswordsAreNotPrinted(t *testing.T) {
	empty := folder(t)
	for _, store := range []string{
		"postgres://me:hush@127.0.0.1:1/db", "postgres:host=127.0.0.1 port=1 password=hush", // nobody is there
		"postgres://me:hush@127.0.0.1:none/db", "postgres:password=hush port='", "postgres://me:hu%zzhush@h/d", "postgres:hush", "postgre://me:hush@h/d",
		"postgresql://me:hush@127.0.0.1:1/db",
		"host=127.0.0.1 password=hush",
	} {
		code, output := runChild(t, "-store", store, empty)
		require.NotZero(t, code, store)
		require.NotContains(t, output, "hush", store)
	}
	_, output := runChild(t, "-store", "postgres:host=h", "password=hush", "user=me", empty)
	require.NotContains(t, output, "hush")
}

func TestFreshOnPostgresLeavesAloneWhatIsNotItsOwn(t *testing.T) {
	t.Parallel()
	store := postgresStore(t)
	_, schema, found := strings.Cut(store, "search_path=")
	require.True(t, found)
	schema, _, _ = strings.Cut(schema, "&")
	require.NoError(t, execPostgres(t.Context(), pgtest.DSN(t),
		"create schema "+schema+"; create table "+schema+".users as select 'ada' as name"))
	root := tree(t, 3)
	code, output := runChild(t, "-fresh", "-store", store, root)
	require.Equal(t, exitFailed, code, output)
	require.Contains(t, output, "it holds no table quickstart_results: it is somebody else's")
	require.NoError(t, execPostgres(t.Context(), pgtest.DSN(t), "drop table "+schema+".users"))
	code, output = runChild(t, "-fresh", "-store", store, root)
	require.Zero(t, code, "an empty schema is nobody's: %s", output)
	require.NotContains(t, output, "starting over")

	db, err := open(t.Context(), config{store: store}, quiet())
	require.NoError(t, err)
	at := db.(*postgresServer).pool.Config().ConnConfig
	require.Contains(t, db.Where(), fmt.Sprintf("%q of the database %q on %s:%d", schema, at.Database, at.Host, at.Port))
	require.False(t, at.Password != "" && strings.Contains(db.Where(), at.Password))
	code, output = runChild(t, "-fresh", "-store", store, root)
	require.NoError(t, db.Close())
	require.Equal(t, exitFailed, code, output)
	require.Contains(t, output, "it is in use")

	// The same server by the other name of a URL's scheme; key=value words may follow either.
	store = "postgresql:" + strings.TrimPrefix(store, "postgres:")
	code, output = runChild(t, "-fresh", "-store", store, root)
	require.Zero(t, code, output)
	require.Contains(t, output, "starting over: emptied the schema")
	requireOnce(t, store, root)
}
