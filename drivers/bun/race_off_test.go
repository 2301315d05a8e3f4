//go:build !race

package bunstore_test

const raceEnabled = false
