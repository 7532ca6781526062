# The short commands. Everything real is in CMake; see CMakePresets.json for the builds.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

JOBS ?= $(shell nproc)
# Shows progress where there is no terminal, and a sign of life at least every five seconds.
FLOW := cmake/flow

# $(call configure,PRESET,OPTIONS): the arguments of the first configure stay in the cache.
configure = cmake --preset $(1) $(2) | $(FLOW) --steps-only
# What builds everything once compiles in batches and without line tables; who changes one file after another does not.
ONCE := $(if $(CI),-DLEASEHOLD_BATCHES=ON -DLEASEHOLD_PCH=ON -DCMAKE_CXX_FLAGS_DEBUG=-O1)
# $(call build,FOLDER,TARGETS): on a terminal ninja rewrites one line.
build = if [ -t 1 ]; then ninja -C build/$(1) -j$(JOBS) $(2); \
	else ninja -C build/$(1) -j$(JOBS) $(2) | $(FLOW); fi
# $(call ctest,PRESET,ARGUMENTS): ends with ctest's own summary.
# Six slots for two cores: tests of processes mostly wait and take one, the others two.
ctest = ctest --test-dir build/$(1) --output-on-failure --no-tests=error -j$$((3 * $(JOBS))) $(2) $(CTEST_ARGS)

SOURCES = git ls-files '*.h' '*.cc'

.PHONY: help
help:
	@echo 'Leasehold: a Raft engine with a leader lease. Targets:'
	@echo
	@echo '  make demo      install, build, and watch three replicas lose their leader'
	@echo '  make test      install, build and run the tests, but for the long ones'
	@echo
	@echo '  make test-long  the long tests: the model, the lab in a browser, builds of the library in other ways'
	@echo '  make check     the unit tests and 200 simulated seeds: a minute, for after each change'
	@echo '  make build     the program, optimised, in build/release'
	@echo '  make install   the library, its headers and the program, into PREFIX (/usr/local)'
	@echo '  make dist      an archive of the source of the newest commit, the same each time, in build/dist'
	@echo '  make packages  Debian packages of the program, the C library and the development files'
	@echo '  make asan      the tests under the address and undefined-behaviour sanitizers'
	@echo '  make tsan      the tests under the thread sanitizer'
	@echo '  make clang     the tests, built by clang'
	@echo '  make compare   beside etcd and Redis: a table of ratios, and plots in build/compare.html'
	@echo '  make bench     the measurements of bench/README.md'
	@echo '  make mutants   break each rule on purpose; every break has to be noticed'
	@echo '  make docs      pages about the public headers, in build/docs/html'
	@echo '  make site      these and all other pages as a site, in build/docs/site'
	@echo '  make lab       the lease lab, a page for browsers: build/lab/lease-lab.html'
	@echo '  make format    rewrite the sources in the format'
	@echo '  make verify    check the format, the static analysis and each header by itself, change nothing'
	@echo '  make verify-quick  the format of all, the analysis of what a lease rests on and what changed'
	@echo '  make clean     remove build/'
	@echo
	@echo '  make deps      install the Debian packages of packages.txt, to build the program (as root)'
	@echo '  make deps-develop  those of packages-develop.txt, too: to test, measure and change it'
	@echo
	@echo 'JOBS=N sets the parallelism; CTEST_ARGS="-R lease" picks tests.'

# $(call install,LISTS): installs what is missing of the packages that the lists name.
define install
@wanted=$$(sed 's/#.*//' $(1) | xargs -n1 | sort -u); \
present=$$(dpkg-query -W -f '$${db:Status-Status} $${Package}\n' $$wanted 2>/dev/null \
  | awk '$$1 == "installed" { print $$2 }' | sort -u || true); \
missing=$$(comm -23 <(echo "$$wanted") <(echo "$$present")); \
if [ -z "$$missing" ]; then exit 0; fi; \
if [ "$$(id -u)" != 0 ]; then \
  echo "These packages are missing:" $$missing >&2; \
  echo "Install them as root: sudo make $@" >&2; exit 1; fi; \
echo "Installing $$(echo "$$missing" | wc -l) Debian packages of $(strip $(1)):" $$missing; \
export DEBIAN_FRONTEND=noninteractive; \
transcript=$$(mktemp); \
{ apt-get update -q && apt-get install -y -q --no-install-recommends -o Dpkg::Use-Pty=0 $$missing; } \
  < /dev/null 2>&1 | tee "$$transcript" | $(FLOW) --steps-only \
  || { tail -n 30 "$$transcript" >&2; echo "Installing failed; the transcript is $$transcript" >&2; exit 1; }; \
rm -f "$$transcript"
endef

.PHONY: deps deps-develop
deps:
	$(call install,packages.txt)
deps-develop:
	$(call install,packages.txt packages-develop.txt)

.PHONY: build
build: deps
	@$(call configure,program)
	@$(call build,release,leasehold)

PREFIX ?= /usr/local
.PHONY: install
install: deps
	@$(call configure,program)
	@$(call build,release,leasehold_package)
	@cmake --install build/release --prefix "$(PREFIX)" > /dev/null
	@echo "Installed Leasehold in $(PREFIX)"

# The settings of who runs it do not count.
.PHONY: dist
dist:
	@mkdir -p build/dist
	@version=$$(sed -n 's/^project(leasehold VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt); \
	git -c tar.umask=0022 archive --format=tar --prefix=leasehold-$$version/ HEAD | env -u GZIP gzip -9n > build/dist/leasehold-$$version.tar.gz; \
	cd build/dist && sha256sum leasehold-$$version.tar.gz | tee leasehold-$$version.tar.gz.sha256

.PHONY: packages
packages: deps-develop
	@$(call configure,packages)
	@$(call build,packages,leasehold_package)
	@cpack --config build/packages/CPackConfig.cmake -B build/packages/debian | $(FLOW)
	@ls -l build/packages/debian/*.deb

.PHONY: packages-check
packages-check: packages
	@python3 -B tests/clean-room/packages.py build/packages --this-machine

.PHONY: demo
demo: deps
	@$(call configure,demo)
	@$(call build,demo,leasehold)
	@build/demo/server/leasehold demo

.PHONY: check
check: deps-develop
	@$(call configure,dev)
	@$(call build,dev,quick_tests)
	@$(call ctest,dev,-L quick)

.PHONY: test test-long
test test-long: deps-develop
	@$(call configure,dev,$(ONCE))
	@$(call build,dev)
	@$(call ctest,dev,$(if $(filter test,$@),-LE,-L) long)

.PHONY: asan tsan clang
asan tsan clang: deps-develop
	@$(call configure,$@)
	@$(call build,$@)
	@$(call ctest,$@)

# The data of the servers goes to the disk of this folder: /tmp may be memory.
.PHONY: compare
compare:
	$(call install,packages.txt packages-peers.txt)
	@$(call configure,program)
	@$(call build,release,leasehold)
	@build/release/server/leasehold bench compare --dir build --html build/compare.html
	@echo 'The page is build/compare.html: open it in a browser'

.PHONY: bench
bench: deps-develop
	@$(call configure,release)
	@$(call build,release)
	@bench/measure.py

.PHONY: mutants
mutants: deps-develop
	@python3 -B tests/mutants/run.py
	@python3 -B tests/explore/mutants.py
	@python3 -B tests/story/mutants.py

.PHONY: format
format:
	@$(SOURCES) | xargs clang-format -i

# Whole, the analysis takes a quarter of an hour; what was clean and has not changed since costs a fraction of a second.
.PHONY: verify verify-quick
verify verify-quick: deps-develop
	@$(SOURCES) | xargs clang-format --dry-run -Werror
	@$(call configure,clang,$(if $(filter verify-quick,$@),-B build/$@ -DLEASEHOLD_BATCHES=ON))
	@$(call build,$(if $(filter verify,$@),clang,$@),leasehold_wire_generated $(if $(filter verify,$@),headers_alone))
	@tests/tidy/analyse.py . build/$(if $(filter verify,$@),clang,$@) --jobs $(JOBS) $(if $(filter verify-quick,$@),--quick) | $(FLOW)

.PHONY: site
site: docs
	@docs/site.py build/docs

.PHONY: docs
docs: deps-develop
	@docs/doxygen.sh build/docs
	@echo 'The pages are in build/docs/html: open index.html'

# Everything that the page needs is in the one file.
.PHONY: lab
lab:
	$(call install,packages.txt packages-lab.txt)
	@$(call configure,lab)
	@$(call build,lab,lab_page)
	@echo 'The page is build/lab/lease-lab.html: open it in a browser'

.PHONY: clean
clean:
	@rm -rf build
