package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/internal/pgtest"
)

// TestKilledAtAnyMomentAllIsExact: kills end each run but the last, and the last one finds what a plain reading of the
// file says.
func TestKilledAtAnyMomentAllIsExact(t *testing.T) {
	t.Parallel() // it waits for leases to end
	killed(t, "sqlite:"+filepath.Join(t.TempDir(), "l.db"), size(600, 10_000), size(5, 10))
}

func TestKilledOnPostgresAllIsExact(t *testing.T) {
	t.Parallel()
	killed(t, postgresStore(t), size(300, 10_000), size(2, 10))
}

// TestTwoAtOnceOnPostgres: two processes import the same file, meet at every batch, and neither of them deadlocks.
func TestTwoAtOnceOnPostgres(t *testing.T) {
	t.Parallel()
	file := transfersFile(t, 400)
	args := []string{"-batch", "20", "-store", postgresStore(t), file}
	cmds := []*process{start(t, args...), start(t, args...)}
	for _, c := range cmds {
		code, output := c.wait()
		require.Zero(t, code, output)
		require.Contains(t, output, simulated(t, file))
	}
}

func TestImportedAgainNothingHappens(t *testing.T) {
	t.Parallel()
	file := transfersFile(t, 60)
	args := []string{"-store", "sqlite:" + filepath.Join(t.TempDir(), "l.db"), file}
	for i := range 2 {
		code, output := start(t, args...).wait()
		require.Zero(t, code, output)
		require.Contains(t, output, simulated(t, file))
		require.Equal(t, i == 1, strings.Contains(output, "0 transfers completed, 0 overdrafts refused"), output)
	}
}

// TestAuditSeesWhatIsWrong: the report is not exact by definition.
func TestAuditSeesWhatIsWrong(t *testing.T) {
	t.Parallel()
	file := transfersFile(t, 60)
	store := "sqlite:" + filepath.Join(t.TempDir(), "l.db")
	code, output := start(t, "-store", store, file).wait()
	require.Zero(t, code, output)
	for _, c := range []struct{ harm, mend, says string }{
		{"update ledger_balances set balance = balance + 1 where account = 'a000'", "update ledger_balances set balance = balance - 1 where account = 'a000'", "the projection has"},
		{"insert into ledger_webhooks values ('x', 1)", "delete from ledger_webhooks where id = 'x'", "distinct webhooks for"},
		{"update stint_events set type = 'refused' where seq = (select max(seq) from stint_events where type = 'completed')", "", "postings for"},
	} {
		execSQLite(t, store, c.harm)
		code, output := start(t, "-store", store, file).wait()
		require.Equal(t, exitFailed, code, output)
		require.Contains(t, output, "not exact: ")
		require.Contains(t, output, c.says)
		if c.mend != "" {
			execSQLite(t, store, c.mend)
		}
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	lost := filepath.Join(t.TempDir(), "nowhere", "x")
	other := filepath.Join(t.TempDir(), "other.csv")
	require.NoError(t, os.WriteFile(other, []byte("a;b\n1;2\n"), 0o600))
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"-h"}, 0, "usage: ledger"},
		{[]string{"-store", "mysql:x"}, exitUsage, "unknown -store: use sqlite:PATH or postgres:DSN"},
		{[]string{"-store", "postgres:"}, exitUsage, "unknown -store"},
		{[]string{"-frsh"}, exitUsage, "-frsh"},
		{[]string{"a", "b"}, exitUsage, "one file at most"},
		{[]string{"-batch", "0"}, exitUsage, "-batch must be 1 to 500"},
		{[]string{lost}, exitFailed, "no such file"},
		{[]string{"-store", "sqlite:" + lost}, exitFailed, "folder"},
		{[]string{"-store", "sqlite:" + filepath.Join(t.TempDir(), "l.db"), other}, exitFailed, "must begin with the line " + header},
		{[]string{"-store", "postgres:password=hush port='"}, exitUsage, "not a connection string"},
	} {
		code, output := start(t, c.args...).wait()
		require.Equal(t, c.code, code, "%v: %s", c.args, output)
		require.Contains(t, output, c.says)
		require.NotContains(t, output, "hush")
	}
}

func TestTheShippedFileIsTheGenerators(t *testing.T) {
	var made strings.Builder
	require.NoError(t, generate(&made, 10_000))
	require.Equal(t, made.String(), shipped)
	require.Less(t, len(shipped), 500_000)
}

func TestBadLinesAreRefused(t *testing.T) {
	tr, err := read("t1,a,b,5\r")
	require.NoError(t, err)
	require.Equal(t, Transfer{"t1", "a", "b", 5}, tr)
	for line, says := range map[string]string{
		"":                           "1 columns",
		"t1,a,b":                     "3 columns",
		"t1,a,b,5,6":                 "5 columns",
		",a,b,5":                     `"" is no id`,
		`"t1",a,b,5`:                 "is no id",
		"t1,a,b c,5":                 `"b c" is no id`,
		"t1,a,b,x":                   `"x" is no amount`,
		"t1,a,b,0":                   "amount 0 is not within",
		"t1,a,b,-1":                  "amount -1 is not within",
		"t1,a,b,1000000000001":       "is not within",
		"t1,a,b,9999999999999999999": "is no amount",
		"t1,a,a,5":                   "from a to itself",
	} {
		_, err := read(line)
		require.ErrorContains(t, err, says, "%q", line)
	}
}

func TestNobodyPaysWhatTheyDoNotHave(t *testing.T) {
	require.NoError(t, pay(Account{5}, Transfer{"t", "a", "b", 5}))
	require.NoError(t, pay(Account{-5}, Transfer{"t", world, "b", 5}))
	var refused *OverdraftError
	require.ErrorAs(t, pay(Account{5}, Transfer{"t", "a", "b", 6}), &refused)
	require.Equal(t, &OverdraftError{"a", 5, 6}, refused)
}

// postgresStore is a -store on the tests' server, in a schema of its own.
func postgresStore(t *testing.T) string {
	t.Helper()
	dsn := pgtest.DSN(t)
	schema := pgtest.Schema(t, func(ctx context.Context, sql string) error {
		conn, err := pgx.Connect(ctx, dsn)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close(ctx) }()
		_, err = conn.Exec(ctx, sql)
		return err
	})
	u, err := url.Parse(dsn)
	if err != nil || u.Scheme == "" {
		return fmt.Sprintf("postgres:%s search_path=%s", dsn, schema) // key=value words
	}
	q := u.Query()
	q.Set("search_path", schema)
	u.RawQuery = q.Encode()
	return u.String()
}

func execSQLite(t *testing.T, store, sql string) {
	t.Helper()
	db, _, err := open(t.Context(), store)
	require.NoError(t, err)
	_, err = db.DB().ExecContext(t.Context(), sql)
	require.NoError(t, err)
	require.NoError(t, db.Close())
}
