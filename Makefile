# The commands of this repository. `make help` lists them; each says what it does as it goes.
# Nothing here is needed to build: `cargo build` and `cargo test --workspace` work too, once `make setup` has found a
# nats-server.

CARGO ?= cargo

# How many seeds the simulation runs, in `make test` and in `make sim`, from FIRST (0) on. SEED=n repeats a single one, with
# ONLY=a,b those of its faults that shrinking left.
TEST_SEEDS ?= 50
SIM_SEEDS  ?= 1000

# What `make demo` understands: WORLD=DIR (a folder of .def files), DURATION=seconds (30; of a WORLD as long as it takes to
# drive all of it), BOTS=count, SEED=n, KEEP=1 (leave it running).
DEMO_FLAGS = $(if $(WORLD),--world $(WORLD)) $(if $(DURATION),--duration $(DURATION)) $(if $(BOTS),--bots $(BOTS)) \
             $(if $(SEED),--seed $(SEED)) $(if $(filter-out 0,$(KEEP)),--keep)

# What `make play` understands: BOTS=count, PAGE=IP:PORT (the page's local address), DATA=DIR (the realm's data).
PLAY_FLAGS = $(if $(BOTS),--bots $(BOTS)) $(if $(PAGE),--page $(PAGE)) --data $(or $(DATA),target/play/data)

# The libclang that `make setup` has unpacked where the system gives none.
PRIVATE_LIBCLANG = $(if $(LIBCLANG_PATH),,$(addprefix LIBCLANG_PATH=,$(wildcard $(CURDIR)/target/tools/libclang)))

# Suites that start servers or search for long; `make quick` leaves them to `make test`, which names none and so runs all.
SLOW = annals-authoring annals-host annals-realm annals-chaos annals-model annals-bench annals-sim annals-fuzz annals

.DEFAULT_GOAL := help
.PHONY: help setup quick test play demo rolling cluster chaos attacks sim fuzz mutants first-game docs bench dist lint lint-fdb lint-deps check-ops fmt clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

setup: ## install what is missing: a C compiler, a private nats-server, a TypeScript compiler, a browser and Prometheus for tests
	@ops/setup.sh

demo: setup ## build, run a realm as separate processes with 100 bots, kill two of them, and check that nothing shown was lost
	@echo "demo: building (profile fast-build; minutes at first)"
	@$(CARGO) build --locked --profile fast-build --quiet --bins -p annals -p annals-host -p annals-sample
	@$(or $(CARGO_TARGET_DIR),target)/fast-build/annals demo $(strip $(DEMO_FLAGS))

play: setup ## build, run a realm with bots, and a web page in which you play: walk, talk, fight, trade, kill processes (BOTS PAGE DATA)
	@ops/play-page.sh target/play/page
	@echo "play: building (profile fast-build; minutes at first)"
	@$(CARGO) build --locked --profile fast-build --quiet --bins -p annals -p annals-host -p annals-sample -p annals-verify
	@$(or $(CARGO_TARGET_DIR),target)/fast-build/annals play --files target/play/page $(strip $(PLAY_FLAGS))

rolling: setup ## replace every process of a realm twice, in random order, while 200 bots trade, and check that no session is lost; FROM=COMMIT begins with that commit's programs, and goes back (BOTS SEED ROUNDS FROM)
	@echo "rolling: building (profile fast-build; minutes at first)"
	@$(CARGO) build --locked --profile fast-build --quiet --bins -p annals -p annals-host -p annals-sample -p annals-console
	@$(if $(FROM),from=$$(CARGO=$(CARGO) ops/programs-of.sh $(FROM)) && )\
	  $(or $(CARGO_TARGET_DIR),target)/fast-build/annals demo --rolling $(or $(ROUNDS),2) --bots $(or $(BOTS),200) \
	  $(if $(SEED),--seed $(SEED)) $(if $(FROM),--from "$$from")

cluster: setup ## a realm on three hosts (network namespaces, as root) under bots: one cut off and joined, one removed (BOTS SEED)
	@echo "cluster: building (profile fast-build; minutes at first)"
	@$(CARGO) build --locked --profile fast-build --quiet --bins -p annals -p annals-host -p annals-sample
	@$(or $(CARGO_TARGET_DIR),target)/fast-build/annals demo --cluster --bots $(or $(BOTS),60) $(if $(SEED),--seed $(SEED))

test: setup ## build and run every test, with 50 seeds of the simulation
	@echo "test: every crate, real nats-server where a test needs one, $(TEST_SEEDS) simulated realms"
	@ANNALS_SIM_SEEDS=$(TEST_SEEDS) CARGO=$(CARGO) ops/test.sh

quick: fmt-check lint ## formatting, lints and the tests that start no servers: before each commit
	@echo "quick: tests that start no servers"
	@$(CARGO) test --locked --quiet --no-fail-fast --workspace --lib --bins --tests $(addprefix --exclude ,$(SLOW))
	@$(CARGO) test --locked --quiet --no-fail-fast --lib $(addprefix -p ,$(SLOW))

sim: ## run 1,000 simulated realms under faults (SIM_SEEDS=n FIRST=n; SEED=n repeats one, ONLY=a,b with these of its faults)
	@echo "sim: $(if $(SEED),seed $(SEED),$(SIM_SEEDS) seeds)"
	@$(if $(SEED),ANNALS_SIM_SEED=$(SEED) ANNALS_SIM_ONLY=$(ONLY),ANNALS_SIM_SEEDS=$(SIM_SEEDS) ANNALS_SIM_FIRST=$(FIRST)) \
		$(CARGO) test --locked --release -p annals-sim -- --nocapture

chaos: setup ## kill, freeze and damage realms of bots, round after round, and print how they recover (ROUNDS=200 SEED=1 BOTS=200)
	@echo "chaos: building (release)"
	@$(CARGO) build --locked --release --quiet --bins -p annals -p annals-host -p annals-sample
	@CHAOS_ROUNDS=$(or $(ROUNDS),200) CHAOS_SEED=$(or $(SEED),1) CHAOS_BOTS=$(or $(BOTS),200) \
	  $(CARGO) test --locked --release --quiet -p annals-chaos --test chaos -- \
	    --ignored --nocapture --test-threads 1 --exact rounds damage_on_one_server damage_on_three_servers

attacks: setup ## attack a realm of honest bots in every known way, and print what each attack costs (BOTS=100 ATTACK_SECONDS=20)
	@echo "attacks: building (release)"
	@$(CARGO) build --locked --release --quiet --bins -p annals -p annals-host -p annals-sample
	@CHAOS_BOTS=$(or $(BOTS),100) CHAOS_SECONDS=$(or $(ATTACK_SECONDS),20) \
	  $(CARGO) test --locked --release --quiet -p annals-chaos --test chaos -- \
	    --ignored --nocapture --test-threads 1 --exact attacks

fuzz: ## feed all decoders with inputs found by coverage, FUZZ_SECONDS each (60); TARGETS="a b" chooses some
	@ops/fuzz.sh

mutants: ## change the code place by place and list what no test notices (TARGETS="ledger node" SAMPLE=30 MUTANTS_SECONDS=1200 SEED=n)
	@ops/mutants.sh

first-game: setup ## follow docs/first-game.md from an empty folder: make a game, change it, test it, run it
	@$(CARGO) test --locked --workspace --test first_game -- --ignored --nocapture

docs: ## build the behaviour reference, with warnings denied: every function and hook that a game can use, with examples
	@RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --quiet --no-deps --lib \
	  $(addprefix -p ,annals-game annals-node annals-event annals-ids annals-def annals-wire annals-client annals-host)
	@echo "docs: $(or $(CARGO_TARGET_DIR),target)/doc/annals_game/index.html"

bench: setup ## measure, print a table, write target/bench.json
	@echo "bench: building (release)"
	@$(CARGO) build --locked --release --quiet --bins -p annals -p annals-host -p annals-sample -p annals-bench
	@$(or $(CARGO_TARGET_DIR),target)/release/annals-bench

dist: ## pack a release of the commit that is checked out into target/dist, and verify it (PROFILE=release)
	@CARGO=$(CARGO) PROFILE=$(or $(PROFILE),release) ops/dist.sh

lint: ## clippy on everything, warnings denied
	@echo "lint: clippy"
	@$(CARGO) clippy --locked --quiet --workspace --all-targets -- -D warnings

lint-fdb: setup ## clippy on what can have FoundationDB's client in it, in both API versions (links nothing, needs libclang)
	@echo "lint: the store, db and the command line with FoundationDB's client, API 7.3 and 6.3"
	@for api in fdb fdb-6_3; do \
	    $(PRIVATE_LIBCLANG) $(CARGO) clippy --locked --quiet \
	        -p annals-store -p annals-db --features annals-store/$$api,annals-store/conformance --all-targets -- -D warnings && \
	    $(PRIVATE_LIBCLANG) $(CARGO) clippy --locked --quiet \
	        -p annals-host -p annals --features $$api -- -D warnings || exit 1; \
	done

lint-deps: ## licences, bans and sources of what we depend on (needs cargo-deny)
	@command -v cargo-deny >/dev/null || { echo "lint-deps: cargo-deny is missing: cargo install --locked cargo-deny"; exit 1; }
	@cargo-deny --log-level error --locked check licenses bans sources

check-ops: setup ## the files for operators in ops/: systemd units, Compose, Kubernetes, nats-server, scripts
	@ops/check.sh

fmt: ## format the Rust code
	@$(CARGO) fmt --all

.PHONY: fmt-check
fmt-check:
	@echo "fmt: checking"
	@$(CARGO) fmt --all --check

clean: ## remove what was built, the private nats-server too
	@$(CARGO) clean
	@rm -rf target
