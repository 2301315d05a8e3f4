package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"time"

	sourcing "github.com/hallgren/eventsourcing/core"
	store "github.com/hallgren/eventsourcing/eventstore/sql"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx of database/sql
)

// sourced keeps the same events with hallgren/eventsourcing's store: one table, a version per aggregate. Whoever reads the
// log keeps its place by himself.
type sourced struct {
	db       *sql.DB
	events   *store.Postgres
	payload  []byte
	versions [64]sourcing.Version // by writer
}

func openSourced(dsn string, payload []byte) (*sourced, error) {
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxIdleConns(32)
	events, err := store.NewPostgres(db)
	if err != nil {
		return nil, err
	}
	return &sourced{db: db, events: events, payload: payload}, nil
}

func (s *sourced) append(_ context.Context, writer, batch int) error {
	list := make([]sourcing.Event, batch)
	for i := range list {
		list[i] = sourcing.Event{
			AggregateID: strconv.Itoa(writer), AggregateType: "account", Reason: "deposited",
			Version: s.versions[writer] + sourcing.Version(i+1), Timestamp: time.Now(), Data: s.payload,
		}
	}
	if err := s.events.Save(list); err != nil {
		return err
	}
	s.versions[writer] += sourcing.Version(batch)
	return nil
}

// scan reads all events, which is one query.
func (s *sourced) scan() (float64, error) {
	began, n := time.Now(), 0
	rows, err := s.events.All(0)()
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		if _, err := rows.Value(); err != nil {
			return 0, fmt.Errorf("event %d: %w", n, err)
		}
		n++
	}
	return float64(n) / time.Since(began).Seconds(), nil
}
