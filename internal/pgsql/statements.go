package pgsql

// working are the statements of workers and producers, whose plans must stay what they are however large the tables
// get.
func working() []string {
	return []string{
		sqlFindOwn, sqlFindID, sqlNames, sqlHolders, sqlNumbers,
		sqlInsert, sqlInsertKeyed, sqlTakeKeys, sqlTakenInVain, sqlLockKeys, sqlEntries, sqlMoveWindows, sqlReplace, sqlLanes,
		sqlClaim, sqlJoin, sqlUnderToken, sqlSweep,
		sqlExtend, sqlHeld,
		sqlComplete, sqlCompleteTx, sqlSettle, sqlSettleTx, sqlTrim, sqlNamed, sqlAnswers,
		sqlSuspect, sqlEnded, sqlFold,
		sqlLook, sqlCancelReady, sqlCancelDelayed, sqlAskCancel, sqlRevive, sqlReviveKeyed, sqlPromote,
		sqlRemoveReady, sqlRemoveDelayed, sqlRemoveFinished, sqlSweepKeys, sqlPause, sqlResume, sqlPaused,
		sqlPutSchedule, sqlRemoveSchedule, sqlSchedules, sqlDueSchedules, sqlTickLock, sqlTickMove, sqlTickPutOff, sqlIsPending,
		sqlGet, sqlAttempts, sqlRecords, sqlIsPaused,
		directed(listEnqueued, true), directed(listEnqueued, false), directed(listDelayed, true), directed(listDelayed, false),
		directed(listFinished, true), directed(listFinished, false),
		sqlEnds, sqlBeyond, sqlPrune,
		sqlAppendNew, sqlAppendAt, sqlAppendAny, sqlEntityVersion, sqlEntityPage,
		sqlSettledPage, sqlBarrier, sqlNewestSeq, sqlLogEnd,
		sqlLockCursor, sqlTryCursor, sqlCursorThere, sqlNewCursor, sqlTryNewCursor, sqlSaveCursor, sqlCursors,
		sqlPutNote, sqlDeleteNote, sqlNotes,
	}
}

// InTransactions are the statements of an application's transactions as they are sent, for drivers that keep them
// prepared.
func (s *Schema) InTransactions() []string {
	var texts []string
	for _, statement := range []string{sqlInsert, sqlHolders, sqlEntries, sqlInsertKeyed, sqlCompleteTx, sqlFindID} {
		texts = append(texts, s.text(statement))
	}
	return texts
}
