// Package pgtest gives tests a Postgres.
//
//   - [DSN] is the database that all tests of one test process share.
//   - [Start] is a cluster of its own, for tests that stop, kill and restart the server.
//   - [Schema] keeps tests that share a database apart.
//
// The shared database is the one that STINT_TEST_POSTGRES names, or else a throw-away cluster made from the server
// binaries of this machine: those in the folder STINT_TEST_POSTGRES_BIN, else on PATH, else the newest that the
// system's packages installed. A machine without either fails the test; nothing is skipped.
//
// A throw-away cluster lives in one temporary folder, listens on 127.0.0.1 on a port of its own under a password of
// its own, and belongs to the process that asked for it: a small shell, the keeper, stops the server and removes the
// folder when that process ends, however it ends. Root hands the cluster to the user postgres, or else nobody, since
// the server refuses to run as root; the binaries must be readable to that user.
//
// Packages under test are processes of their own, so each has its own cluster, about a second after the first test
// asks. A test that starts other processes hands them the DSN instead of letting them ask again.
package pgtest
