package pgsql

// working are the statements of workers and producers, whose plans must stay what they are however large the tables
// get.
func working() []string {
	return []string{
		sqlFindOwn, sqlFindID, sqlNames, sqlHolders,
		sqlInsert, sqlInsertKeyed, sqlTakeKeys, sqlTakenInVain, sqlLockKeys, sqlEntries, sqlMoveWindows, sqlReplace, sqlLanes,
		sqlClaim, sqlJoin,
		sqlExtend, sqlHeld,
		sqlComplete, sqlCompleteTx, sqlSettle, sqlSettleTx, sqlTrim, sqlNamed, sqlAnswers,
		sqlEnded,
		sqlLook, sqlCancelReady, sqlCancelDelayed, sqlAskCancel, sqlRevive, sqlReviveKeyed, sqlPromote,
		sqlRemoveReady, sqlRemoveDelayed, sqlRemoveFinished, sqlSweepKeys,
		sqlTickLock, sqlTickMove, sqlTickPutOff, sqlIsPending,
		sqlGet, sqlAttempts, sqlRecords,
		sqlEnds, sqlBeyond, sqlPrune,
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
