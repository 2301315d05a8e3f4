package conformance

func concurrentCases() []testCase { return nil }
