package postgres

import (
	"context"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5/pgxpool"
)

const topic = "events"

// watermilled publishes and follows the same events with watermill-sql: messages in one table, a consumer's offset in
// another, no entities and no versions.
type watermilled struct {
	db      sql.Beginner
	publish *sql.Publisher
	payload []byte
}

func openWatermill(ctx context.Context, pool *pgxpool.Pool, payload []byte) (*watermilled, error) {
	db := sql.BeginnerFromPgx(pool)
	schema := sql.DefaultPostgreSQLSchema{}
	p, err := sql.NewPublisher(db, sql.PublisherConfig{SchemaAdapter: schema, AutoInitializeSchema: true}, nil)
	if err != nil {
		return nil, err
	}
	w := &watermilled{db: db, publish: p, payload: payload}
	return w, w.append(ctx, 0, 1) // makes the tables
}

func (w *watermilled) append(_ context.Context, _, batch int) error {
	msgs := make([]*message.Message, batch)
	for i := range msgs {
		msgs[i] = message.NewMessage(watermill.NewULID(), w.payload)
	}
	return w.publish.Publish(topic, msgs...)
}

// follow reads and acknowledges n messages, page by page.
func (w *watermilled) follow(ctx context.Context, group string, page, n int) (float64, error) {
	sub, err := sql.NewSubscriber(w.db, sql.SubscriberConfig{
		ConsumerGroup: group, PollInterval: 5 * time.Millisecond,
		SchemaAdapter: sql.DefaultPostgreSQLSchema{SubscribeBatchSize: page}, OffsetsAdapter: sql.DefaultPostgreSQLOffsetsAdapter{},
		InitializeSchema: true,
	}, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = sub.Close() }()
	began := time.Now()
	messages, err := sub.Subscribe(ctx, topic)
	if err != nil {
		return 0, err
	}
	for range n {
		select {
		case m := <-messages:
			m.Ack()
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return float64(n) / time.Since(began).Seconds(), nil
}
