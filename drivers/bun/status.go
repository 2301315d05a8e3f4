package bunstore

import (
	"time"

	"github.com/uptrace/bun"

	"github.com/stintmq/stint/core"
)

// JobStatus is a row of the view of all jobs, without payloads and results: job_status in the store's schema on
// Postgres, stint_job_status on SQLite. It is there for reading, see Store.SelectJobs. Zero values: there is none.
type JobStatus struct {
	bun.BaseModel `bun:"table:job_status,alias:job"`

	ID       string // "#n" where the store gave it
	Queue    string
	Name     string
	State    core.State // a delayed job that is due is waiting
	Priority int

	RunAt       time.Time
	Attempts    int
	MaxAttempts int
	Stalls      int
	Snoozes     int
	Runs        int
	EnqueuedAt  time.Time

	ClaimedAt       time.Time // of an active job, and of the last run of a finished one
	LeaseUntil      time.Time // of an active job
	Worker          string    // of an active job, and of the last run of a finished one
	CancelRequested bool      // of an active job
	FinishedAt      time.Time
	Failure         *core.Failure `bun:"type:jsonb"`

	Metadata map[string]string `bun:"type:jsonb"`
}

// SelectJobs begins a query of all jobs, for a list of JobStatus or of columns. Within a transaction add Conn(tx).
//
//	var failed []bunstore.JobStatus
//	err := store.SelectJobs().Where("state = ?", core.StateFailed).Where("queue = ?", "mail").
//		Order("finished_at DESC").Limit(20).Scan(ctx, &failed)
//
// A query that names states, and on Postgres a queue, reads those; one that names an id alone reads all jobs, for
// which Get is made. Times, also those that decide whether a delayed job is due, are the database's, whatever
// Options.Clock says.
func (s *Store) SelectJobs() *bun.SelectQuery {
	return s.db.NewSelect().Model((*JobStatus)(nil)).ModelTableExpr("? AS ?TableAlias", s.view)
}
