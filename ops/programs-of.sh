#!/usr/bin/env bash
# Builds the programs of another commit (profile fast-build, minutes) and prints their folder, for
# `make rolling FROM=COMMIT`. What was built before is kept.
#
#   ops/programs-of.sh COMMIT
set -euo pipefail
cd "$(dirname "$0")/.."

readonly CARGO=${CARGO:-cargo}
readonly PROGRAMS="annals-base annals-cell annals-db annals-director annals-login annals-signer"

[ $# -eq 1 ] || { echo "programs-of: name one commit" >&2; exit 2; }
commit=$(git rev-parse --verify --quiet --short=12 "$1^{commit}") ||
    { echo "programs-of: $1 is no commit of this repository" >&2; exit 2; }
folder=$PWD/target/releases/$commit
is_whole() {
    local program
    for program in $PROGRAMS; do [ -x "$folder/$program" ] || return 1; done
}
if ! is_whole; then
    echo "programs-of: building the programs of $commit (profile fast-build; minutes)" >&2
    mkdir -p target/releases
    # A folder of its own: Cargo compares times of files, and those of another commit may be older.
    work=$(mktemp -d "$PWD/target/releases/work.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    mkdir "$work/source" "$work/bin"
    git archive "$commit" | tar --extract --directory "$work/source"
    (cd "$work/source" && ANNALS_COMMIT=$commit CARGO_TARGET_DIR=$work/build \
        "$CARGO" build --locked --profile fast-build --quiet --bins -p annals-host -p annals-sample) >&2
    for program in $PROGRAMS; do
        cp "$work/build/fast-build/$program" "$work/bin/"
    done
    rm -rf "$folder"
    mv "$work/bin" "$folder"
fi
echo "$folder"
