# Two targets do everything on a fresh Debian or Ubuntu machine with a Rust toolchain: `make demo`, `make test`.

TOLL := target/release/toll

.PHONY: demo test test-agents test-cluster cluster cluster-down lint bench fuzz build clean

## demo: install what is missing, build without MongoDB's driver, measure what a sidecar pair costs
demo:
	scripts/setup demo
	cargo build --release --locked -p toll --bin toll --no-default-features
	$(TOLL) run mesher --quick

## test: install what is missing, run every test that this machine allows
test:
	scripts/setup test
	scripts/test

## test-agents: real agents in fresh JVMs at every isolation level, which `make test` leaves out: see the reasons they give
test-agents:
	scripts/setup test
	cargo test -p toll-lab --test lab --locked -- --ignored traced petclinic

## cluster: a Kubernetes node of its own on this machine, as root (see cluster/README.md)
cluster:
	scripts/setup cluster
	cluster/up

## cluster-down: remove it and all that it made
cluster-down:
	cluster/down

## test-cluster: the tests of `--on kubernetes` on such a node, which is removed afterwards
test-cluster:
	scripts/setup cluster
	scripts/test-cluster

## lint: formatting and clippy, warnings denied
lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings

## fuzz: feed the parsers arbitrary bytes, each target for FUZZ_SECONDS; needs rustup, installs what is missing
FUZZ_SECONDS ?= 120
fuzz:
	scripts/fuzz $(FUZZ_SECONDS)

## build: the command, for use
build:
	cargo build --release --locked

## bench: compare `toll load` with other load generators, tables into bench/RESULTS.md (25 minutes, an idle machine)
bench:
	cargo build --release --locked --bin toll --bin toll-bench
	target/release/toll-bench --write bench/RESULTS.md

clean:
	cargo clean
