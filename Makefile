# Deckhand. `make` lists what there is; `make run` and `make test` need nothing
# but Go, git and, for what is missing, apt.

SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: upgrade-test help build runner web run test test-short test-changed mutants attack torture suite soak forge-test proxy-test bench bench-compare flame page-bench pictures lint vuln fmt fuzz openapi clean setup dist dist-test package-test image-test engine-test flags

VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
FUZZTIME ?= 10s
ARGS     ?=

# The program and everything that looks at it are compiled alike, so that lint
# finds in the build cache what build has just put there.
STATIC := CGO_ENABLED=0 GOFLAGS="$(strip $(GOFLAGS) -trimpath -buildvcs=false)"
TOOL   := $(STATIC) go tool -modfile=tools/go.mod

# Both programs are compiled with the profile, so that what they share is compiled
# once. Packages are counted as they are compiled, on a terminal.
PROFILE := -pgo=cmd/deckhand/serve.pgo
COMPILE := $(STATIC) scripts/compile

# Go files that people wrote: not fetched, not test material.
GOFILES = find . -name '*.go' -not -path '*/node_modules/*' -not -path '*/testdata/*' -not -path './bin/*'

say = @printf '\n== %s\n' '$(1)'

help: ## list the targets
	@echo 'make run     builds and starts the server    make test    installs what tests need and runs them all'
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

# The runner is built first and packed into deckhand. It is replaced only when it
# changed, so that deckhand is not built again for nothing.
EMBEDDED := internal/sandbox/runner/embedded/bin/runner.gz

runner: ## bin/runner, the half that lives in the sandbox, and its packed copy
	$(call say,build: bin/runner)
	@mkdir -p bin
	@$(COMPILE) bin/runner $(PROFILE) -ldflags "-s -w" ./cmd/runner
	@gzip -9 -n -c bin/runner > bin/runner.gz
	@cmp -s bin/runner.gz $(EMBEDDED) || cp bin/runner.gz $(EMBEDDED)

# The page is built anew when something it is made of is newer than it is. Without
# Node.js there is a program without a page, which says so.
WEB = $(shell find web docs README.md CONTRIBUTING.md CHANGELOG.md -newer web/dist/index.html -type f -not -path '*/node_modules/*' -not -path '*/dist/*' -not -path '*/e2e/*' -not -name schema.d.ts 2>&1)

web: ## web/dist, the page that people see
	$(call say,build: the web page)
	@if ! command -v npm >/dev/null; then \
		echo 'THE WEB PAGE IS NOT BUILT: install Node.js 20 or newer'; test "$${CI:-}" != true; \
	elif test -n '$(WEB)'; then \
		cd web; \
		cmp -s package-lock.json node_modules/.deckhand-lock || { npm ci && cp package-lock.json node_modules/.deckhand-lock; } || \
			{ echo 'THE WEB PAGE IS NOT BUILT: npm cannot install what it is made with'; test "$${CI:-}" != true; exit 0; }; \
		find dist -mindepth 1 -not -name .keep -delete; npm run --silent build; \
	fi

build: runner web ## bin/deckhand, one static file with the runner and the page inside
	$(call say,build: bin/deckhand $(VERSION))
	@mkdir -p bin
	@$(COMPILE) bin/deckhand $(PROFILE) -ldflags "-s -w -X main.version=$(VERSION)" ./cmd/deckhand
	@bin/deckhand version --sbom > bin/deckhand.spdx.json

run: build ## build, then serve on embedded defaults (ARGS="--addr 127.0.0.1:8080")
	@exec bin/deckhand serve $(ARGS)

# Under CI=true a component that cannot be installed is a failure. For a person
# it is a loud message, and the tests that need it are skipped.
setup:
	$(call say,set-up: what the tests need)
	@scripts/need gcc gcc libc6-dev || test "$${CI:-}" != true
	@scripts/need strace strace || test "$${CI:-}" != true
	@scripts/need npm npm || test "$${CI:-}" != true
	@scripts/need curl curl || test "$${CI:-}" != true
	@scripts/need python3 python3 || test "$${CI:-}" != true
	@scripts/need busybox busybox-static || test "$${CI:-}" != true
	@scripts/need zsh zsh || test "$${CI:-}" != true
	@scripts/need fish fish || test "$${CI:-}" != true
	@scripts/need dash dash || test "$${CI:-}" != true
	@scripts/need nginx nginx-light || test "$${CI:-}" != true
	@scripts/need caddy caddy || test "$${CI:-}" != true
	@scripts/need sqlite3 sqlite3 || test "$${CI:-}" != true
	@scripts/need jq jq || test "$${CI:-}" != true
	@scripts/need openssl openssl || test "$${CI:-}" != true
	@# The package starts an SSH server, so it is only installed in CI.
	@test "$${CI:-}" != true || scripts/need sshd openssh-server
	@scripts/need docker-registry docker-registry || test "$${CI:-}" != true
	@scripts/need pg_ctlcluster postgresql || test "$${CI:-}" != true
	@scripts/need pgbouncer pgbouncer || test "$${CI:-}" != true
	@scripts/need pgrep procps || test "$${CI:-}" != true
	@scripts/need ip iproute2 || test "$${CI:-}" != true
	@scripts/promtool || test "$${CI:-}" != true
	@scripts/nats-server || test "$${CI:-}" != true
	@scripts/need chromium chromium fonts-dejavu-core || test "$${CI:-}" != true
	@scripts/need chromium-headless-shell chromium-headless-shell || true

# Tests are compiled with the race detector. What only computes is not: SQLite is C
# translated to Go, used under a lock, and would take a third of the processor time.
# Packages that use sync.Map or sync.OnceValue cannot be on this list: the linker keeps one
# copy of such generic code for all, and without the detector's marks it sees races where none are.
NO_RACE := modernc.org/... github.com/alecthomas/kong github.com/danielgtaylor/huma/v2 \
	compress/flate encoding/base64 regexp strconv strings unicode/utf8
RACE  := CGO_ENABLED=1 GORACE=atexit_sleep_ms=10 GOFLAGS="$(strip $(GOFLAGS) -trimpath -buildvcs=false $(NO_RACE:%=-gcflags=%=-race=false))"
SUITE := bin/suite -p=3 -timeout=30m -vet=off

# What tests start as a process is the program just built, as users get it. Compiled
# with the race detector, as in a soak, each start takes five times as long.
BUILT := $(if $(DECKHAND_SOAK),,DECKHAND_TEST_PROGRAM=$(CURDIR)/bin/deckhand)

suite:
	@mkdir -p bin
	@$(STATIC) go build -o bin/suite ./scripts/suite

# Three packages at a time, the slowest first, and beside them cmd/deckhand. The engine and what else the tests
# need is started here; bin/suite reports what they leave behind.
test: setup build suite ## everything: set-up, build, all tests
	$(call say,test: the web page)
	@if test -e web/node_modules/.deckhand-lock; then cd web && npm run --silent test; fi
	$(call say,test: every package)
	@if host=$$(scripts/engine start bin/engine); then \
		export "$$host"; trap 'scripts/engine stop bin/engine' EXIT; \
	else test "$${CI:-}" != true; fi; \
	if command -v "$$(go env CC)" >/dev/null; then \
		$(RACE) $(BUILT) $(SUITE) -rerun -leftovers -parallel=4 -race -- $(or $(PACKAGES),./...); \
	else echo 'RUNNING WITHOUT THE RACE DETECTOR: there is no C compiler'; \
		$(STATIC) $(BUILT) $(SUITE) -rerun -leftovers -parallel=4 -- $(or $(PACKAGES),./...); fi

# Half of a quick round is linking, which collects garbage for nothing.
test-short: suite ## a quick round: no set-up, no race detector, slow tests left out
	@GOGC=$(or $(GOGC),200) $(STATIC) $(SUITE) -short -- ./...

test-changed: suite ## the tests of what a change since main, or BASE=commit, can touch
	@$(STATIC) $(SUITE) -changed=$(or $(BASE),$(shell git merge-base HEAD origin/main 2>/dev/null || echo HEAD)) -- ./...

# The list of attacks is the table in docs/security.md.
attack: setup build ## the attacks that docs/security.md names, without the race detector
	$(call say,attack: everything that docs/security.md names)
	@if host=$$(scripts/engine start bin/engine); then \
		export "$$host"; trap 'scripts/engine stop bin/engine' EXIT; \
	else test "$${CI:-}" != true; fi; \
	$(STATIC) $(BUILT) scripts/attack

# A run needs root: it breaks processes, disks and networks in namespaces of its own, and nothing outside of them.
torture: build ## kill processes, cut networks and fill disks under load by a schedule (SEED=n KILLS=1000 STORE=sqlite|postgres SERVERS=n); checks every promise
	$(call say,torture)
	@$(STATIC) go build -o bin/torture ./torture
	@bin/torture -seed $(or $(SEED),0) -kills $(or $(KILLS),100) -store $(or $(STORE),sqlite) -servers $(or $(SERVERS),1) $(ARGS)

mutants: ## break the core in ten places; a test must notice each
	@$(STATIC) go run ./scripts/mutants

soak: ## the measurements among the tests, at full length: an hour or more
	@DECKHAND_SOAK=1 $(MAKE) test

# A forge takes so long to build, if only once, that what needs one is a run of
# its own: all tests with Forge in their name, in files with the build tag forge.
forge-test: runner ## build a real git forge (once, some 10 minutes) and run the tests that need one
	$(call say,test: against a real git forge)
	@scripts/forge build bin/forge
	@vars=$$(scripts/forge start bin/forge); trap 'scripts/forge stop bin/forge' EXIT; export $$vars; \
	packages=$$(grep -rl --include='*_test.go' '"deckhand/internal/gitprovider/gitea/giteatest"' ./internal ./cmd | xargs -n 1 dirname | sort -u); \
	$(RACE) go test -tags forge -p 1 -timeout 30m -vet=off -race -count=1 -run Forge $$packages

proxy-test: runner ## build a real Traefik (once, some 10 minutes) and run the tests of the reverse proxies in the manual
	$(call say,test: behind reverse proxies)
	@scripts/traefik
	@$(STATIC) go test ./cmd/deckhand -count=1 -run 'TestBehind(Nginx|Caddy|Traefik)$$'

bench: build ## run the benchmarks, results in bench/results/
	$(call say,bench)
	@if host=$$(scripts/engine start bin/engine) && export "$$host" && image=$$(scripts/engine-image); then \
		export DECKHAND_BENCH_IMAGE="$$image" DECKHAND_BENCH_ENGINE="$$DOCKER_HOST"; unset DOCKER_HOST; trap 'scripts/engine stop bin/engine' EXIT; \
	else echo 'DOCKER IS NOT MEASURED: no engine can be had'; fi; \
	go run ./bench $(ARGS)

bench-compare: build ## compare with BASE=commit (main), in turns; fails on a regression
	$(call say,bench: against $(or $(BASE),main))
	@scripts/bench-base $(or $(BASE),main) bin/base
	@go run ./bench -base bin/base/deckhand $(ARGS)

# The default is the last version with another schema: the commit before the last migration.
upgrade-test: build ## run servers of BASE=commit (default: before the last migration) and of this version side by side on one PostgreSQL database
	$(call say,test: an older version beside this one)
	@scripts/bench-base $(or $(BASE),$(shell git log -1 --format=%H -- internal/store/postgres/migrations)^) bin/older
	@DECKHAND_OLDER_PROGRAM=$(CURDIR)/bin/older/deckhand DECKHAND_TEST_PROGRAM=$(CURDIR)/bin/deckhand CI=true go test -count=1 -v -run TestUpgradeSideBySide ./cmd/deckhand

# A target that the benchmark misses is no reason not to draw where the time went.
flame: build ## docs/pictures/flame.svg, where the processor time of warm turns goes
	$(call say,flame: a profile of warm turns)
	@go run ./bench -only warm -profiles bin/profiles || true
	@go tool pprof -traces bin/profiles/warm-turns-50-at-once.pprof | go run ./scripts/flame 'Warm turns, 50 at once: processor time of the server' > docs/pictures/flame.svg

page-bench: build ## what the page costs: time to the first event, longest task, memory
	$(call say,bench: the web page)
	@DECKHAND_JUDGE=1 go test ./cmd/deckhand -run TestPageIsLight -count=1 -v | grep -v '^=== '

# The pictures of the README are made by the tests that look at every page and sit at a terminal.
pictures: build ## docs/pictures, as the pages look now
	$(call say,pictures: every page)
	@scripts/pictures

# Packages with code of their own for macOS. A build of the whole program, which make dist does, would take minutes on an empty build cache.
PORTABLE := ./internal/machine ./internal/load/process ./internal/sandbox/runner/files ./internal/sandbox/tree ./internal/sandbox/docker/connect ./internal/store/sqlite/reserve

lint: web ## gofmt, vet, staticcheck, govulncheck; types, prettier and eslint of the page
	$(call say,lint: gofmt)
	@unformatted=$$($(GOFILES) -print0 | xargs -0 gofmt -l); \
		if [ -n "$$unformatted" ]; then echo 'not formatted, run make fmt:'; echo "$$unformatted"; exit 1; fi
	$(call say,lint: go vet)
	@$(STATIC) go vet ./...
	@$(STATIC) go vet -tags forge ./internal/gitprovider/gitea ./cmd/deckhand
	@$(STATIC) go vet -tags legacydoc ./internal/httpapi
	$(call say,lint: macOS)
	@GOOS=darwin GOARCH=arm64 $(STATIC) go build $(PORTABLE)
	$(call say,lint: staticcheck)
	@$(TOOL) staticcheck ./...
	$(call say,lint: govulncheck)
	@$(STATIC) scripts/vuln || test $$? = 3
	$(call say,lint: the web page)
	@if test -e web/node_modules/.deckhand-lock; then cd web; npm run --silent check; npm run --silent lint; \
		else echo 'THE WEB PAGE IS NOT CHECKED: install Node.js 20 or newer and run make web'; test "$${CI:-}" != true; fi

vuln: ## known vulnerabilities in Go modules and npm packages; fails on a finding
	@code=0; $(STATIC) scripts/vuln || code=$$?; scripts/vuln-web || code=$$?; exit $$code

fmt: ## format all Go files
	@$(GOFILES) -print0 | xargs -0 gofmt -l -w

fuzz: ## each fuzz target for FUZZTIME (10s)
	@grep -roE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' api bench client cmd internal 2>/dev/null | sort | \
	while IFS=: read -r file func; do \
		name=$${func#func }; dir=./$$(dirname "$$file"); \
		printf '\n== fuzz: %s %s for %s\n' "$$dir" "$$name" '$(FUZZTIME)'; \
		go test -run '^$$' -fuzz "^$$name\$$" -fuzztime '$(FUZZTIME)' "$$dir" </dev/null || exit 1; \
	done

openapi: ## write the golden OpenAPI document anew, after a wanted change of the contract
	@go test ./internal/httpapi -run OpenAPI -count=1 -update

flags: build ## regenerate docs/flags.md after a command or flag has changed
	@bin/deckhand reference markdown > docs/flags.md

dist: web ## release files in bin/dist: archives, packages, container images, install.sh, checksums
	$(call say,dist)
	@rm -rf bin/dist && scripts/dist bin/dist $(ARGS)

# The default is one system; ARGS="linux/amd64 linux/arm64 darwin/amd64 darwin/arm64" compares all of them.
dist-test: ## build the release files of the commit twice in different folders and compare them
	$(call say,test: reproducible builds)
	@scripts/dist-test bin/dist-test $(or $(ARGS),linux/amd64)

# The tests upgrade from the release files of the previous commit, or of BASE=commit. OLD=FILE upgrades from another deb package.
RELEASES := $(CURDIR)/bin/releases

package-test: web ## install, upgrade and remove the packages: deb and rpm, on a separate systemd instance
	$(call say,test: packages on systemd)
	@scripts/releases $(BASE)
	@scripts/need rpmbuild rpm || test "$${CI:-}" != true
	@scripts/need dnf dnf || test "$${CI:-}" != true
	@scripts/need pg_ctlcluster postgresql || test "$${CI:-}" != true
	@DECKHAND_RPM_OLD=$(RELEASES)/old/deckhand_0.1_amd64.rpm DECKHAND_RPM_NEW=$(RELEASES)/new/deckhand_0.2_amd64.rpm \
	DECKHAND_OLD=$(or $(OLD),$(RELEASES)/old/deckhand_0.1_amd64.deb) DECKHAND_NEW=$(RELEASES)/new/deckhand_0.2_amd64.deb go test -count=1 -v -timeout 30m ./packaging

image-test: web ## run the container image, the image for sandboxes and the compose files: first task, restart, upgrade
	$(call say,test: the container image)
	@scripts/releases $(BASE)
	@docker compose version >/dev/null 2>&1 || scripts/need docker-compose docker-compose || test "$${CI:-}" != true
	@host=$$(scripts/engine start bin/engine); export "$$host"; trap 'scripts/engine stop bin/engine' EXIT; \
	image=$$(scripts/sandbox-image deckhand-sandbox:test) || test "$${CI:-}" != true; \
	DECKHAND_IMAGE_OLD=$(RELEASES)/old DECKHAND_IMAGE_NEW=$(RELEASES)/new DECKHAND_SANDBOX_IMAGE=$$image \
		go test -count=1 -v -timeout 30m -run "TestContainerImage|TestSandboxImage|TestCommandsOfTheManual" ./packaging

# The same tests run with Docker in make test.
engine-test: runner ## run the tests of the docker driver with rootless Docker, Podman and rootless Podman
	@set -e; for kind in docker-rootless podman podman-rootless; do \
		echo "== $$kind"; dir=$$(mktemp -d /tmp/engine-test-XXXXXX); chmod 755 "$$dir"; \
		trap "scripts/engine-kind stop $$kind $$dir; rm -rf $$dir" EXIT; \
		host=$$(scripts/engine-kind start "$$kind" "$$dir"); \
		env "$$host" $(STATIC) go test -count=1 -timeout 30m -run '$(or $(RUN),TestSuite|TestEscapes|TestCheckpoint)' ./internal/sandbox/docker; \
		scripts/engine-kind stop "$$kind" "$$dir"; rm -rf "$$dir"; trap - EXIT; \
	done

clean: ## remove what make built
	@rm -rf bin
