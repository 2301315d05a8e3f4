package pqstore_test

import (
	"testing"

	"github.com/stintmq/stint/core"
	pqstore "github.com/stintmq/stint/drivers/pq"
	"github.com/stintmq/stint/internal/pgstore/pgstoretest"
)

func TestLargePayloads(t *testing.T) {
	s := open(t, database(t, dsn(t, "", "")), pqstore.Options{Schema: kit.Schema(t), Limits: core.Limits{Payload: core.MaxPayload}})
	pgstoretest.LargePayloads(t, s)
}
