# Targets for nadmit. `make` lists them.

CARGO ?= cargo
FUZZ_SECONDS ?= 30
K8S ?= 1.34
MUTANTS ?= 100
DENY ?= licenses bans sources
CARGO_DENY = 0.20.2
MDBOOK = 0.5.4
BINARIES ?=
# The sources' paths are not in the binary, so that it is the same wherever it is built.
HOST = $(shell rustc -vV | sed -n 's/^host: //p')
CARGO_HOME ?= $(HOME)/.cargo
STATIC = -C target-feature=+crt-static --remap-path-prefix=$(CURDIR)=. --remap-path-prefix=$(CARGO_HOME)=cargo
OUTPUT = $(or $(CARGO_TARGET_DIR),target)
# Another architecture needs its standard library (rustup target add) and its C compiler (Debian: gcc-aarch64-linux-gnu).
ARCHITECTURES ?=
TARGETS = $(if $(ARCHITECTURES),$(patsubst arm64,aarch64-unknown-linux-gnu,$(patsubst amd64,x86_64-unknown-linux-gnu,$(ARCHITECTURES))),$(HOST))
CROSS = $(if $(filter x86_64-%,$(HOST)),CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc,CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER=x86_64-linux-gnu-gcc)
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)

.PHONY: help build image sbom release-dry-run test e2e node readers agreement lint deny doc book bench fuzz mutants renderings generate

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## the release binary, target/release/nadmit
	$(CARGO) build --release --locked

image: ## the container image without an engine, target/nadmit-image.tar (of this architecture, or ARCHITECTURES="amd64 arm64"; installs cargo-auditable if it is missing)
	command -v cargo-auditable >/dev/null || $(CARGO) install --locked cargo-auditable@0.7.7
	for target in $(TARGETS); do \
		RUSTFLAGS="$(STATIC)" $(CROSS) $(CARGO) auditable build --release --locked --bin nadmit --target $$target || exit 1; \
	done
	deploy/image $(OUTPUT)/nadmit-image.tar nadmit:$(VERSION) $(TARGETS:%=$(OUTPUT)/%/release/nadmit)

sbom: ## what the binary is built from, as CycloneDX: target/nadmit.cdx.json
	mkdir -p target
	deploy/sbom $(HOST) target/nadmit.cdx.json

release-dry-run: ## all files of a release, checked, in target/release-files, and nothing published (for ARCHITECTURES as `make image`; BINARIES=target/debug/nadmit builds nothing)
	$(if $(BINARIES),,$(MAKE) image)
	deploy/release/dry-run $(if $(BINARIES),--any-linkage) $(OUTPUT)/release-files $(or $(BINARIES),$(TARGETS:%=$(OUTPUT)/%/release/nadmit))

test: ## all tests; at its end it lists those that cannot run here, because Go, python3, a browser, root or a container runtime is missing (in CI they fail)
	tests/all $(K8S)

e2e: ## the tests against a real API server and the real operator (K8S=1.34, TEST=secret:: for some; the first time builds them)
	tests/cluster/run $(K8S) -- $(TEST)

node: ## the tests on a real node with pods, in namespaces of their own (needs root; TEST=node::errors for some; the first time builds it)
	tests/node/run -- $(TEST)

readers: ## compare nadmit with the programs that read a config, on a few thousand generated ones (NADMIT_SEED repeats a run)
	tests/readers/run

agreement: ## the same on 200,000 configs, which are 100,000 for each reader within one program, 50,000 networks and 50,000 pod annotations; writes docs/agreement.md
	NADMIT_AGREEMENT=$(abspath $(OUTPUT))/agreement.md tests/readers/run 200000 50000 50000
	cp $(OUTPUT)/agreement.md docs/agreement.md

lint: ## formatting and clippy, warnings are errors
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --all-targets -- -D warnings
	$(CARGO) clippy --locked --test cluster -- -D warnings
	$(CARGO) clippy --locked --test readers -- -D warnings

deny: ## licences, bans, duplicates and sources of all dependencies (installs cargo-deny if it is missing); DENY=advisories needs the network
	command -v cargo-deny >/dev/null || $(CARGO) install --debug --locked cargo-deny@$(CARGO_DENY)
	$(CARGO) deny --locked check $(DENY)

doc: ## the API documentation, warnings are errors
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --no-deps --document-private-items

book: ## the pages of docs/ as a book to search, target/book (installs mdbook if it is missing)
	command -v mdbook >/dev/null || $(CARGO) install --locked mdbook@$(MDBOOK) --no-default-features --features search
	mdbook build --dest-dir $(abspath $(OUTPUT))/book

bench: ## benchmarks: time, instructions, check over thousands of files, audit-log over a large log, serve beside a bare server
	$(CARGO) bench --locked --bench judge
	$(CARGO) bench --locked --bench count
	$(CARGO) bench --locked --bench check
	$(CARGO) bench --locked --bench audit_log
	$(CARGO) bench --locked --bench serve

mutants: ## break the pure modules in 100 random ways (MUTANTS=100, SEED repeats a run) and list what no test notices (installs cargo-mutants if it is missing)
	command -v cargo-mutants >/dev/null || $(CARGO) install --locked cargo-mutants@27.1.0
	tests/mutants $(MUTANTS)

renderings: ## compare the two ways to render a network, directly and through YAML, for a million generated networks
	PROPTEST_CASES=10000 $(CARGO) test --locked --lib resources::render -- --nocapture

fuzz: ## each fuzz target for FUZZ_SECONDS (needs a nightly toolchain; installs cargo-fuzz if it is missing)
	command -v cargo-fuzz >/dev/null || $(CARGO) install --locked cargo-fuzz@0.13.2
	for target in audit_events audit_log config manifest review status; do \
		mkdir -p fuzz/corpus/$$target; \
		$(CARGO) +nightly fuzz run $$target fuzz/corpus/$$target tests/cases src/policy/rules/examples tests/hostile examples -- \
			-max_total_time=$(FUZZ_SECONDS) -max_len=65536 -rss_limit_mb=2048 || exit 1; \
	done

generate: ## generate docs, schema, manifests and (with Chromium) the pictures of the pages from the code, and write the address of the repository wherever it is needed
	GENERATE=1 $(CARGO) test --locked --quiet --test tests -- generated:: pod_errors::the_page address:: picture_
