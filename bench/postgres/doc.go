// Package postgres measures stint on Postgres beside its peers: the same jobs, the same server, the same run.
//
// The bench starts a throw-away cluster that syncs every commit. Each contender has a database and a process of its
// own, in rounds that alternate, and goes through the same phases. What a phase costs is counted from outside: the
// contender's process's CPU time, that of all processes of the server, and the bytes of log that were written.
package postgres

import "time"

// Config says what to measure.
type Config struct {
	Jobs     int    // per phase; slow contenders get a fraction
	Rounds   int    // of which the medians are taken
	Only     string // contenders whose names contain one of these, separated by commas; "": all
	Phases   string // phases whose names contain one of these, separated by commas; "": all
	Profiles string // folder for a CPU profile of each contender's last drain; "": none

	Pinned    bool          // measure under an old snapshot, instead of the phases
	PinnedFor time.Duration // how long
	Big       bool          // measure beside many rows that are delayed or finished, instead of the phases
	Prune     bool          // measure while finished jobs are pruned, instead of the phases
	Finished  int           // how many finished ones

	Statements bool   // print what pg_stat_statements says of each drain; costs a little
	Graphile   string // a folder in which npm installed graphile-worker; "": without it
	Settings   string // further server settings, name=value, separated by commas
}
