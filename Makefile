# make test                  format, vet and every test, with the race detector, on a Postgres of its own
# make test-postgres PG=18   the Postgres store on another release, 13 to 18, which npm fetches into ./bin
# make lint                  the linter, pinned and built into ./bin on first use (some minutes)
# make bench                 benchmarks of the worker and the drivers, and stint beside its peers (docs/benchmarks.md)
# make quickstart            the smallest program

LINT_VERSION := v2.15.0
LINT         := bin/golangci-lint-$(LINT_VERSION)

# The race detector needs cgo, hence a C compiler. Without one the tests run, and say so.
RACE ?= $(shell command -v $$(go env CC) >/dev/null 2>&1 && echo -race)

# SQLite is C that was translated to Go: watched by the detector it takes six times as long, and its races are not ours to
# find. That C only: a package that is not watched lends its instances of generic types to the whole program, and with
# those of modernc.org/sqlite itself, sync.Map's, the detector sees races in encoding/json that are none.
RACE_FLAGS = $(RACE) -gcflags='modernc.org/sqlite/lib=-race=false' -gcflags='modernc.org/libc/...=-race=false'

.PHONY: test test-postgres lint fmt bench quickstart

test:
	@unformatted="$$(gofmt -l .)"; test -z "$$unformatted" || { echo "gofmt -w needed:"; echo "$$unformatted"; exit 1; }
	go vet ./...
	@scripts/ensure-postgres
	@test -n "$(RACE)" || echo "note: no C compiler (gcc or clang) found, testing without the race detector"
	$(if $(RACE),CGO_ENABLED=1) go test $(if $(RACE),$(RACE_FLAGS)) -timeout 20m ./...

PG ?= 18

test-postgres:
	@scripts/ensure-postgres
	STINT_TEST_POSTGRES_BIN="$$(scripts/fetch-postgres $(PG))" && export STINT_TEST_POSTGRES_BIN && \
		go test -timeout 10m -skip 'Mutants|Pooler|ExecModes|LargePayloads' ./internal/pgsql ./drivers/pgx

lint: $(LINT)
	$(LINT) run ./...
	go mod tidy -diff

fmt: $(LINT)
	$(LINT) fmt ./...

$(LINT):
	GOBIN="$(CURDIR)/bin" go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
	mv bin/golangci-lint $(LINT)

bench:
	go test -run '^$$' -bench . -benchmem ./core ./drivers/...
	cd bench && go run .

quickstart:
	go run ./examples/quickstart
