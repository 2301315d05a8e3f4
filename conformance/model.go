package conformance

func modelCases() []testCase { return nil }
