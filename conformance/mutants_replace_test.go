package conformance

import (
	"time"

	"github.com/stintmq/stint/core"
)

// replacing makes a mutant that spoils a job after it was replaced.
func replacing(fault string, spoil func(m *modelStore, j *modelJob, before modelJob)) mutant {
	return keyedMutant(fault, func(x meeting) verdict {
		if !x.r.Dedupe.Replace || x.job.State != core.StateDelayed {
			return asRuled
		}
		before := *x.job
		x.m.meet(*x.r, x.now)
		spoil(x.m, x.job, before)
		return taken
	})
}

func replaceMutants() []mutant {
	list := []mutant{
		keyedMutant("Replace is ignored", func(x meeting) verdict { x.r.Dedupe.Replace = false; return asRuled }),
		keyedMutant("waiting jobs are replaced", func(x meeting) verdict {
			if x.r.Dedupe.Replace && x.job.State == core.StateWaiting {
				x.m.fill(x.job, *x.r, x.now)
				return taken
			}
			return asRuled
		}),
		keyedMutant("the body of an active job is replaced", func(x meeting) verdict {
			if x.r.Dedupe.Replace && x.job.State == core.StateActive {
				x.job.Payload = x.r.Payload
			}
			return asRuled
		}),
		keyedMutant("the body of a finished job is replaced", func(x meeting) verdict {
			if x.r.Dedupe.Replace && x.job.State.Terminal() {
				x.job.Payload = x.r.Payload
			}
			return asRuled
		}),
		keyedMutant("Replace comes after the window", when(func(x meeting) bool { return !x.end.IsZero() && !x.open() }, free)),
		keyedMutant("Replace opens no window", func(x meeting) verdict {
			if x.r.Dedupe.Replace {
				x.r.Dedupe.TTL = 0
			}
			return asRuled
		}),
		keyedMutant("Replace without a TTL closes the window", func(x meeting) verdict {
			if x.r.Dedupe.Replace && x.r.Dedupe.TTL == 0 && x.job.State == core.StateDelayed {
				x.end = time.Time{}
			}
			return asRuled
		}),
		replacing("replaced jobs stay delayed", func(_ *modelStore, j *modelJob, before modelJob) {
			j.State, j.RunAt = core.StateDelayed, before.RunAt
		}),
		replacing("replaced jobs wait in their old place", func(_ *modelStore, j *modelJob, before modelJob) { j.place = before.serial }),
		replacing("a replace is an enqueue in time", func(m *modelStore, j *modelJob, _ modelJob) { j.EnqueuedAt = core.Micros(m.clock.Now()) }),
		replacing("a replace moves the job to its queue", func(_ *modelStore, j *modelJob, before modelJob) { j.Queue = theQueue + "?" }),
		replacing("a replace begins to count again", func(_ *modelStore, j *modelJob, _ modelJob) { j.Attempts, j.Stalls = 0, 0 }),
	}
	for field, spoil := range map[string]func(j *modelJob, before modelJob){
		"Payload":     func(j *modelJob, b modelJob) { j.Payload = b.Payload },
		"Metadata":    func(j *modelJob, b modelJob) { j.Metadata = b.Metadata },
		"Priority":    func(j *modelJob, b modelJob) { j.Priority = b.Priority },
		"MaxAttempts": func(j *modelJob, b modelJob) { j.MaxAttempts = b.MaxAttempts },
		"MaxStalls":   func(j *modelJob, b modelJob) { j.MaxStalls = b.MaxStalls },
		"Backoff":     func(j *modelJob, b modelJob) { j.Backoff = b.Backoff },
		"Keep":        func(j *modelJob, b modelJob) { j.Keep = b.Keep },
		"Timeout":     func(j *modelJob, b modelJob) { j.Timeout = b.Timeout },
		"Trace":       func(j *modelJob, b modelJob) { j.Trace = b.Trace },
		"RunAt": func(j *modelJob, b modelJob) {
			if j.State == core.StateDelayed {
				j.RunAt = b.RunAt
			}
		},
	} {
		list = append(list, replacing("a replace leaves "+field, func(_ *modelStore, j *modelJob, b modelJob) { spoil(j, b) }))
	}
	return list
}
