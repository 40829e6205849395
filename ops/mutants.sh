#!/usr/bin/env bash
# Mutation tests: cargo-mutants changes the code at one place, builds, and runs the tests that should notice. Changes that no
# test notices are listed in target/mutants/survivors.txt; docs/testing.md says what to do with one.
#
# Each target takes a sample of about SAMPLE mutants (30), chosen by SEED, for at most MUTANTS_SECONDS (1200). The same seed
# gives the same mutants of the same code. TARGETS="ledger node" chooses targets.
#
# Runs at the lowest priority, on a copy of what git tracks with its uncommitted changes, so that the working tree can be used
# meanwhile. Copy and builds stay in target/mutants: the first run builds everything, the next one what changed.
set -euo pipefail
cd "$(dirname "$0")/.."
exec </dev/null

readonly CARGO_MUTANTS=27.1.0
readonly SEED=${SEED:-$(date +%s)}
readonly SAMPLE=${SAMPLE:-30}
readonly SECONDS_EACH=${MUTANTS_SECONDS:-1200}
# Seconds after which a test run counts as one that never ends.
readonly LONGEST_RUN=300
readonly OUT=$PWD/target/mutants

# Target, package, files, and the tests that are run: few binaries, since linking them takes most of the time.
readonly ALL="
proof     annals-proof     schema/proof/src/**                    -- --lib --tests
space     annals-space     services/space/src/**                  -- --lib --tests
director  annals-director  services/director/src/**               -- --lib --tests
base      annals-base      services/base/src/**                   -- --lib --tests
cell      annals-cell      services/cell/src/**                   -- --lib --tests
node      annals-node      services/node/src/**                   --test-package annals-node --test-package annals-base --test-package annals-cell -- --lib --tests
resolver  annals-store     services/store/src/resolver.rs         -- --lib --test store
ledger    annals-db        services/db/src/{ledger.rs,ledger/**}  -- --lib --test db
audit     annals-audit     services/audit/src/**                  -- --lib --tests
"

if ! command -v cargo-mutants >/dev/null && [ ! -x target/tools/bin/cargo-mutants ]; then
    echo "mutants: installing cargo-mutants $CARGO_MUTANTS into target/tools"
    cargo install --quiet --locked --debug --version "$CARGO_MUTANTS" --root target/tools --target-dir target/tools/build \
        cargo-mutants
    rm -rf target/tools/build
fi
PATH=$PWD/target/tools/bin:$PATH

# Tries a sample of one target's mutants.
run() {
    local target=$1 status=0
    local options=(--package "$2" --file "$3" --exclude-re 'impl (fmt::)?(Display|Debug) for')
    local all shards
    all=$(cargo mutants --list "${options[@]}" | wc -l)
    shards=$(((all + SAMPLE - 1) / SAMPLE))
    mkdir -p "$OUT/$target"
    timeout --signal INT --kill-after 30 "$SECONDS_EACH" nice -n 19 \
        cargo mutants --in-place --output "$OUT/$target" --timeout "$LONGEST_RUN" --sharding round-robin \
        --shard "$((SEED % shards))/$shards" "${options[@]}" "${@:4}" >"$OUT/$target/log" 2>&1 || status=$?
    # 2: survivors, 3: runs without end, 124, 130 and 137: the time was over.
    case $status in
        0 | 2 | 3 | 124 | 130 | 137) ;;
        *) echo "mutants: $target failed, see target/mutants/$target/log:"; tail -n 20 "$OUT/$target/log"; exit 1 ;;
    esac
    count() { wc -l <"$OUT/$target/mutants.out/$1.txt"; }
    printf 'mutants: %-8s %5d in all: %3d caught, %3d missed, %3d without end, %3d do not compile\n' "$target" "$all" \
        "$(count caught)" "$(count missed)" "$(count timeout)" "$(count unviable)"
    sed "s/^/$target: /" "$OUT/$target/mutants.out/missed.txt" >>"$OUT/survivors.txt"
}

mkdir -p "$OUT/tree"
: >"$OUT/survivors.txt"
changed=$(git stash create)
GIT_INDEX_FILE=$OUT/index git --work-tree "$OUT/tree" read-tree -u --reset "${changed:-HEAD}"
export CARGO_TARGET_DIR=$OUT/build CARGO_INCREMENTAL=1
echo "mutants: SEED=$SEED, about $SAMPLE of each target"
cd "$OUT/tree"
# No pattern of the table is for the shell.
set -f
while read -r target line; do
    # shellcheck disable=SC2086 # The line is split into words.
    case " ${TARGETS:-$target} " in *" $target "*) run "$target" $line ;; esac
done < <(sed '/^$/d' <<<"$ALL")
echo "mutants: $(wc -l <"$OUT/survivors.txt") survive: target/mutants/survivors.txt"
