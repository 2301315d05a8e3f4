package stintotel

import (
	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/journal"
)

// Journal has the effect jobs of a journal carry the context of the span in which their event is recorded, for
// journal.New. An effect's run is then what any job's run is, by Middleware of its worker.
func Journal[Tx any](t *Telemetry, s journal.Store[Tx]) journal.Store[Tx] {
	return tracedJournal[Tx]{s, t}
}

type tracedJournal[Tx any] struct {
	journal.Store[Tx]
	t *Telemetry
}

// Jobs implements journal.Store.
func (j tracedJournal[Tx]) Jobs() journal.Jobs[Tx] {
	jobs := j.Store.Jobs()
	return tracedJobs[Tx]{&store{jobs, j.t}, TxStore[Tx](j.t, jobs)}
}

// tracedJobs is a store, traced inside transactions as well.
type tracedJobs[Tx any] struct {
	*store
	inTx core.TxStore[Tx]
}

// WithTx implements core.TxStore.
func (j tracedJobs[Tx]) WithTx(tx Tx) core.TxView { return j.inTx.WithTx(tx) }
