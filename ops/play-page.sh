#!/usr/bin/env bash
# Compiles the page of `annals play`, with the TypeScript client that it uses, into a folder.
#
#   ops/play-page.sh [FOLDER]      target/play/page by default, where `annals play` looks for it
set -euo pipefail

out=$(realpath -m "${1:-"$(dirname "$0")/../target/play/page"}")
cd "$(dirname "$0")/.."
readonly out

tsc=${TSC:-target/tools/node_modules/.bin/tsc}
[ -x "$tsc" ] || tsc=$(command -v tsc) || {
    echo "play: there is no TypeScript compiler; \`make setup\` installs one where there is npm, or name one as TSC" >&2
    exit 1
}
"$tsc" --project services/play/tsconfig.json --outDir "$out"
cp services/play/index.html services/play/style.css "$out"
