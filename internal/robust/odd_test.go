package robust_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// oddities are settings that change how the server reads or writes text, finds names or plans.
var oddities = map[string][]string{
	"no_such_schema": {"search_path to 'nowhere'"},
	"decoys":         {"search_path to decoy, pg_catalog"},
	"text": {
		"timezone to 'Asia/Kathmandu'", "datestyle to 'SQL, DMY'", "intervalstyle to 'sql_standard'", "bytea_output to 'escape'",
		"extra_float_digits to -15", "lc_numeric to 'C'", "lc_monetary to 'C'", "lc_time to 'C'", "lc_messages to 'C'",
		"xmlbinary to 'hex'", "client_min_messages to 'debug1'", "standard_conforming_strings to off", "escape_string_warning to on",
		"backslash_quote to off", "quote_all_identifiers to on", "array_nulls to off", "transform_null_equals to on",
	},
	"plans": {"plan_cache_mode to 'force_generic_plan'", "jit to off", "enable_seqscan to off", "enable_indexscan to off",
		"enable_tidscan to off", "work_mem to '64kB'"},
}

// oddSettings: whatever is set, values come back as they were given.
func oddSettings(t *testing.T, server target) {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, server.dsn())
	require.NoError(t, err)
	_, err = conn.Exec(ctx, `create schema decoy; create sequence decoy.numbers;`+decoys(
		"jobs", "ready", "delayed", "leases", "finished", "runs", "tallies", "lanes", "sweeps", "paused", "schedules", "dedupe", "schema_version"), pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
	require.NoError(t, conn.Close(ctx))
	for name, settings := range oddities {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			anyDriver(t, func(t *testing.T, d driver) {
				settings := slices.DeleteFunc(slices.Clone(settings), func(s string) bool { return slices.Contains(d.refuses, s) })
				at := role(t, server, name+"_"+d.name, settings...)
				e := newEnv(t, d, at)
				exactValues(e, e.open(at))
				e.sound()
			})
		})
	}
}

func decoys(names ...string) string {
	text := ""
	for _, name := range names {
		text += fmt.Sprintf("create table decoy.%s (seq text, id int, queue int, name int);", name)
	}
	return text
}

// encodings: another encoding is the default of whoever connects, as it is where a database's clients are old ones. What
// is stored is the text all the same, whoever reads it.
func encodings(t *testing.T, server target) {
	eachDriver(t, func(t *testing.T, d driver) {
		both := newEnv(t, d, server)
		for _, encoding := range []string{"LATIN1", "SQL_ASCII"} {
			t.Run(encoding, func(t *testing.T) {
				setting := "client_encoding to '" + encoding + "'"
				at := role(t, server, strings.ToLower(encoding)+"_"+d.name, setting)
				e := both.emptied(t)
				if slices.Contains(d.refuses, setting) {
					_, err := d.open(context.Background(), openOptions{at: at, schema: e.schema})

					require.ErrorContains(t, err, "client_encoding")
					return
				}
				s, plain := e.open(at), e.open(server)
				exactValues(e, s)
				for id, want := range map[string]string{`id '"\ ` + "ü": "ÿ 🦆", `soon\`: ""} {
					job, err := plain.Get(context.Background(), id)
					require.NoError(t, err)
					require.Equal(t, want, job.Metadata["ü"])
				}
				e.sound()
			})
		}
	})
}

// notDurable: the role commits without waiting for the disk. What a claim answered has to outlive the server all the
// same (Q4), so the connections that claim do wait.
func notDurable(t *testing.T, server target) {
	eachDriver(t, func(t *testing.T, d driver) {
		ctx := context.Background()
		name := "not_durable_" + d.name
		at := role(t, server, name, "synchronous_commit to off")
		e := newEnv(t, d, server)
		s := e.open(at)
		// A trigger sees how the transaction that makes a lease commits.
		_, err := e.pool.Exec(ctx, fmt.Sprintf(`
			create table %[1]s.commits (how text);
			create function %[1]s.commits() returns trigger language plpgsql as $$
				begin
					insert into %[1]s.commits values (current_setting('synchronous_commit'));
					return null;
				end $$;
			create trigger stint_test_commits after insert on %[2]s.leases
				for each row execute function %[1]s.commits();`, e.notes, e.schema), pgx.QueryExecModeSimpleProtocol)
		require.NoError(t, err)
		exactValues(e, s)
		require.Equal(t, 3, e.number("select count(*) from "+e.notes+".commits where how = 'on'"))
		require.Equal(t, 3, e.number("select count(*) from "+e.notes+".commits"), "every claim's")
	})
}
