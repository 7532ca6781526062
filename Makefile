# The short commands. Everything real is in CMake; see CMakePresets.json for the builds.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

JOBS ?= $(shell nproc)
# On a terminal ninja rewrites one line; elsewhere show every 20th step and all that is not a step.
PROGRESS := if [ -t 1 ]; then cat; else awk '!/^\[[0-9]+\/[0-9]+\]/ || ++n % 20 == 1; { fflush() }'; fi

# $(call configure,PRESET): the arguments of the first configure stay in the cache.
configure = cmake --preset $(1) > /dev/null
# $(call build,PRESET,TARGETS)
build = if [ -t 1 ]; then ninja -C build/$(1) -j$(JOBS) $(2); \
	else ninja -C build/$(1) -j$(JOBS) $(2) | $(PROGRESS); fi
# $(call ctest,PRESET): ends with ctest's own summary.
ctest = ctest --test-dir build/$(1) --output-on-failure --no-tests=error -j$(JOBS) $(CTEST_ARGS)

SOURCES = git ls-files '*.h' '*.cc'

.PHONY: help
help:
	@echo 'Leasehold: a Raft engine with a leader lease. Targets:'
	@echo
	@echo '  make demo      install, build, and watch three replicas lose their leader'
	@echo '  make test      install, build and run every test'
	@echo
	@echo '  make deps      install the Debian packages of packages.txt (as root)'
	@echo '  make build     the optimised build, in build/release'
	@echo '  make install   the library, its headers and the program, into PREFIX (/usr/local)'
	@echo '  make asan      the tests under the address and undefined-behaviour sanitizers'
	@echo '  make tsan      the tests under the thread sanitizer'
	@echo '  make clang     the tests, built by clang'
	@echo '  make bench     the measurements of bench/README.md'
	@echo '  make mutants   break each rule on purpose; every break has to be noticed'
	@echo '  make verify    check the format and the static analysis, change nothing'
	@echo '  make format    rewrite the sources in the format'
	@echo '  make clean     remove build/'
	@echo
	@echo 'JOBS=N sets the parallelism; CTEST_ARGS="-R lease" picks tests.'

.PHONY: deps
deps:
	@wanted=$$(sed 's/#.*//' packages.txt | xargs -n1 | sort -u); \
	present=$$(dpkg-query -W -f '$${db:Status-Status} $${Package}\n' $$wanted 2>/dev/null \
	  | awk '$$1 == "installed" { print $$2 }' | sort -u || true); \
	missing=$$(comm -23 <(echo "$$wanted") <(echo "$$present")); \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if [ "$$(id -u)" != 0 ]; then \
	  echo "These packages are missing:" $$missing >&2; \
	  echo "Install them as root: sudo make deps" >&2; exit 1; fi; \
	echo "Installing $$(echo "$$missing" | wc -l) Debian packages of packages.txt:" $$missing; \
	export DEBIAN_FRONTEND=noninteractive; \
	transcript=$$(mktemp); \
	{ apt-get update -q && apt-get install -y -q --no-install-recommends -o Dpkg::Use-Pty=0 $$missing; } \
	  < /dev/null 2>&1 | tee "$$transcript" | awk '/^(Get:|Setting up)/ && ++n % 25 == 0 { print "  " $$0; fflush() }' \
	  || { tail -n 30 "$$transcript" >&2; echo "Installing failed; the transcript is $$transcript" >&2; exit 1; }; \
	rm -f "$$transcript"

.PHONY: build
build: deps
	@$(call configure,release)
	@$(call build,release)

PREFIX ?= /usr/local
.PHONY: install
install: deps
	@$(call configure,release)
	@$(call build,release,leasehold_package)
	@cmake --install build/release --prefix "$(PREFIX)" > /dev/null
	@echo "Installed Leasehold in $(PREFIX)"

.PHONY: demo
demo: deps
	@$(call configure,release)
	@$(call build,release,leasehold)
	@build/release/server/leasehold demo

.PHONY: test
test: deps
	@$(call configure,dev)
	@$(call build,dev)
	@$(call ctest,dev)

.PHONY: asan tsan clang
asan tsan clang: deps
	@$(call configure,$@)
	@$(call build,$@)
	@$(call ctest,$@)

.PHONY: bench
bench: build
	@bench/measure.py

.PHONY: mutants
mutants: deps
	@python3 -B tests/mutants/run.py
	@python3 -B tests/explore/mutants.py

.PHONY: format
format:
	@$(SOURCES) | xargs clang-format -i

.PHONY: verify
verify: deps
	@$(SOURCES) | xargs clang-format --dry-run -Werror
	@$(call configure,clang)
	@$(call build,clang,leasehold_wire)
	@$(SOURCES) | grep '\.cc$$' | grep -vE '^(tests|bench|examples)/' \
	  | xargs -P$(JOBS) -n1 clang-tidy -p build/clang --quiet 2> /dev/null

.PHONY: clean
clean:
	@rm -rf build
