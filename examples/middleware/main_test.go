package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	memstore "github.com/stintmq/stint/drivers/memory"
)

// Time is the bubble's: nothing here waits, and durations are exact.
func TestRunsAreLoggedAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log, page bytes.Buffer
		if err := run(t.Context(), memstore.New(memstore.Options{}), slog.New(slog.NewTextHandler(&log, nil)), &page); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			`stint_runs_total{queue="pictures",job="resize",outcome="complete",state="completed"} 4`,
			`stint_runs_total{queue="pictures",job="resize",outcome="fail",state="failed"} 2`,
			`stint_runs_total{queue="pictures",job="resize",outcome="retry",state="delayed"} 2`,
			`stint_run_seconds_total{queue="pictures",job="resize"} 0.4`,
			`stint_jobs{queue="pictures",state="delayed"} 1`,
			`stint_oldest_waiting_seconds{queue="pictures"} 0`,
		} {
			if !strings.Contains(page.String(), want+"\n") {
				t.Errorf("no %s in\n%s", want, page.String())
			}
		}
		for _, want := range []string{`msg="run begins" job=resize`, `msg="run ends"`, `msg="run failed"`, `msg="run panicked"`, "disk is busy"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("no %s in\n%s", want, log.String())
			}
		}
		if strings.Contains(log.String(), "a.png") {
			t.Error("payloads are in the log")
		}
	})
}
