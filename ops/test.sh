#!/usr/bin/env bash
# Builds every test, then runs two groups side by side: realms of real processes, which mostly wait, and all others,
# which mostly compute. Both select the whole workspace, and so the same features of each crate: nothing is built twice.
#
#   ops/test.sh        with ANNALS_SIM_SEEDS seeds of the simulation
set -euo pipefail
cd "$(dirname "$0")/.."

readonly CARGO=${CARGO:-cargo}
readonly REALMS=annals-realm
# The one test target of that package.
readonly REALMS_TARGET=running
# More than permits for realms (MAX_CONCURRENT in played.rs), so that a test that waits for a permit holds up no other.
readonly REALM_THREADS=8

echo "test: building"
"$CARGO" test --locked --workspace --no-run --quiet

output=$(mktemp)
# A job of its own process group, so that an interrupt ends its realms too.
set -m
realms=
end() {
    [ -z "$realms" ] || kill -TERM -- "-$realms" 2>/dev/null || true
    rm -f "$output"
}
trap end EXIT
trap 'exit 130' INT TERM

echo "test: realms of real processes, beside all other tests; their output follows at the end"
"$CARGO" test --locked --no-fail-fast --workspace --test "$REALMS_TARGET" -- --test-threads "$REALM_THREADS" >"$output" 2>&1 &
realms=$!
set +m

status=0
"$CARGO" test --locked --no-fail-fast --workspace --exclude "$REALMS" || status=$?
others=$SECONDS
wait "$realms" || status=$?
realms=

echo "test: realms of real processes ($((SECONDS - others)) s after the others)"
cat "$output"

# By itself: it compiles a game, and realms beside it would wait for the processor.
echo "test: the page of the first game"
"$CARGO" test --locked --workspace --test first_game -- --ignored || status=$?

if [ "$status" -ne 0 ]; then
    echo "test: panics of realms of real processes, as above"
    grep -A 2 ' panicked at ' "$output" || true
fi
exit "$status"
