package litesql

// Statements are the texts worth keeping prepared: parsing one costs SQLite more than running it does.
func Statements() []string {
	return []string{
		sqlTick, sqlTake, sqlWake, sqlNews, sqlLockTake,
		sqlFindOwn, sqlFindID, sqlFindIDs,
		sqlLane, sqlNewLane, sqlTotals,
		sqlEntries, sqlEntryOf, sqlMoveWindow, sqlNewBody, sqlNewStand, newKeys.one, newKeys.many, sqlKeyOf, sqlFreeKeys,
		newJobs.one, newJobs.many, newWork.one, newWork.many,
		sqlLanes, sqlBodies, sqlLease, sqlUnderToken,
		sqlDue, sqlJoin, sqlNextDue, sqlHead,
		sqlStanding, sqlPending, sqlGone, sqlTrim, sqlCompleted,
		newFinished.one, newFinished.many, newRuns.one, newRuns.many,
		sqlQueues, sqlAnswers, sqlNamed,
		sqlHeld, sqlExtend, sqlSuspect, sqlEnded,
		sqlSavepoint, sqlRelease,
		sqlSchedule, sqlMoveSchedule, sqlPutOff, sqlIsPending,
		sqlAskCancel, sqlFinal, sqlKeepEntry, sqlUnfinish, sqlRevive,
		sqlEntityVersion, sqlNewEvent, sqlEntityPage, sqlLogPage, sqlCursor, sqlSaveCursor, sqlNotes,
		sqlOldestEnds, sqlPruneFinished, sqlPruneRuns, sqlPruneJobs,
	}
}

// Reading are the texts of the readers worth keeping prepared.
func Reading() []string {
	return []string{sqlFindOwn, sqlFindID, sqlGet, sqlAttempts, sqlPaused, sqlDueHead, sqlDueSchedules}
}

// Listening are the texts of the wake channel worth keeping prepared.
func Listening() []string { return []string{sqlNews} }
