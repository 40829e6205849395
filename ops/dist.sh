#!/usr/bin/env bash
# Packs a release: programs, the client for C and for TypeScript, man pages, completions, files for operators, lists of
# dependencies, checksums. Docs: docs/releases.md.
#
#   ops/dist.sh                      builds from the commit that is checked out, packs, and verifies (`make dist`)
#   ops/dist.sh pack FOLDER SECONDS  writes FOLDER/SHA256SUMS, FOLDER.tar.gz and FOLDER.tar.gz.sha256; every file has this time
#   ops/dist.sh verify ARCHIVE TEXT  unpacks it, checks all sums, and that each program prints a version with TEXT
#
# PROFILE=release|fast-build chooses cargo's profile. The same folder gives the same archive, byte for byte.
set -euo pipefail
exec </dev/null
export LC_ALL=C

readonly CYCLONEDX=0.5.9
readonly PROFILE=${PROFILE:-release}
readonly CARGO=${CARGO:-cargo}
readonly PROGRAMS="annals annals-base annals-cell annals-console annals-db annals-director annals-login annals-signer annals-verify"
readonly PACKAGES="annals annals-host annals-console annals-verify annals-sample"
# The C library of the client: its package, and its name in files.
readonly LIBRARY_PACKAGE=annals-client-c
readonly LIBRARY=annals_client_c
# What operators get of ops/; the rest is for those who build.
readonly OPERATORS="bots compose kubernetes nats systemd telemetry"

say() { printf 'dist: %s\n' "$*"; }
die() { printf 'dist: %s\n' "$*" >&2; exit 1; }

# pack FOLDER SECONDS
pack() {
    local folder=${1%/} seconds=$2 parent name odd
    [ -d "$folder/bin" ] || die "$folder has no folder bin with programs; fill it first"
    odd=$(find "$folder" ! -type f ! -type d -print -quit)
    [ -z "$odd" ] || die "$odd is neither a file nor a folder: an archive of a release has nothing else"
    parent=$(dirname "$folder") name=$(basename "$folder")
    find "$folder" -type d -exec chmod 755 {} +
    find "$folder" -type f -exec chmod 644 {} +
    find "$folder" -name '*.sh' -exec chmod 755 {} +
    chmod 755 "$folder"/bin/*
    rm -f "$folder/SHA256SUMS"
    (cd "$folder" && find . -type f ! -name SHA256SUMS -printf '%P\0' | sort -z | xargs -0 sha256sum >../SHA256SUMS.new)
    mv "$parent/SHA256SUMS.new" "$folder/SHA256SUMS"
    chmod 644 "$folder/SHA256SUMS"
    # Neither tar nor gzip may add what differs from run to run: order, owners, times, names.
    tar --create --sort=name --format=ustar --owner=0 --group=0 --numeric-owner --mtime="@$seconds" \
        --directory "$parent" "$name" | gzip --best --no-name >"$folder.tar.gz.new"
    mv "$folder.tar.gz.new" "$folder.tar.gz"
    (cd "$parent" && sha256sum "$name.tar.gz" >"$name.tar.gz.sha256")
}

# verify ARCHIVE TEXT
verify() {
    local archive=$1 text=$2 work name program printed
    (cd "$(dirname "$archive")" && sha256sum --check --quiet "$(basename "$archive").sha256") ||
        die "$archive is not what its .sha256 says; download or build both again"
    work=$(mktemp -d)
    # shellcheck disable=SC2064 # the folder of this call
    trap "rm -rf '$work'" EXIT
    tar --extract --gzip --file "$archive" --directory "$work"
    name=$(basename "$archive" .tar.gz)
    (cd "$work/$name" && sha256sum --check --quiet --strict SHA256SUMS) ||
        die "$archive has files that are not what its SHA256SUMS says"
    (cd "$work/$name" && find . -type f ! -name SHA256SUMS -printf '%P\n' | sort) >"$work/present"
    sed 's/^[0-9a-f]*  //' "$work/$name/SHA256SUMS" | sort | cmp -s - "$work/present" ||
        die "$archive has files that its SHA256SUMS does not name, or lacks some"
    for program in "$work/$name"/bin/*; do
        printed=$("$program" --version) || die "bin/$(basename "$program") of $archive does not run"
        case $printed in
            *"$text"*) ;;
            *) die "bin/$(basename "$program") of $archive prints the version \"$printed\", without \"$text\"" ;;
        esac
    done
    say "verified: $(wc -l <"$work/present") files have the sums of SHA256SUMS, $(ls "$work/$name/bin" | wc -l) programs run"
    rm -rf "$work"
    trap - EXIT
}

need_cyclonedx() {
    PATH=$PWD/target/tools/bin:$PATH
    if command -v cargo-cyclonedx >/dev/null; then return; fi
    say "installing cargo-cyclonedx $CYCLONEDX into target/tools"
    "$CARGO" install --quiet --locked --debug --version "$CYCLONEDX" --root target/tools --target-dir target/tools/build \
        cargo-cyclonedx
    rm -rf target/tools/build
}

# sboms FOLDER: one list of dependencies for each program and for the library, of the commit that is checked out.
sboms() {
    local source=target/dist/source found built name
    rm -rf "$source"
    mkdir -p "$source" "$1"
    git archive HEAD | tar --extract --directory "$source"
    (cd "$source" && "$CARGO" cyclonedx --quiet --format json --spec-version 1.5 --describe binaries --target "$TARGET")
    # With the kinds of what is built, as cargo-cyclonedx names its files.
    for built in $(printf '%s_bin ' $PROGRAMS) "${LIBRARY}_cdylib-rlib"; do
        name=${built%_*}
        found=$(find "$source" -name "$built.cdx.json")
        [ -n "$found" ] || die "cargo-cyclonedx wrote no list for $name"
        # The folder of this machine says nothing to a reader.
        sed "s|path+file://$PWD/$source|path+file:///annals|g" "$found" >"$1/$name.cdx.json"
    done
    rm -rf "$source"
}

# The TypeScript compiler and npm, which make the package of the TypeScript client.
need_npm() {
    command -v npm >/dev/null || die "npm is not installed, and packs the TypeScript client: install Node 22 or later with npm"
    [ -x target/tools/node_modules/.bin/tsc ] || ops/setup.sh
    grep -q "\"version\": \"$VERSION\"" services/client-ts/package.json ||
        die "services/client-ts/package.json has another version than $VERSION, which is that of the release"
    [ -x target/tools/node_modules/.bin/tsc ] || die "there is no TypeScript compiler: run \`make setup\`, and read what it says"
}

# npm_package FOLDER: the TypeScript client of the commit that is checked out, as npm installs it.
npm_package() {
    local folder=$1 source=$PWD/target/dist/npm used
    rm -rf "$source"
    mkdir -p "$source"
    git archive HEAD:services/client-ts | tar --extract --directory "$source"
    git archive HEAD LICENSE | tar --extract --directory "$source"
    target/tools/node_modules/.bin/tsc -p "$source"
    (cd "$source" && npm pack --silent --pack-destination "$folder" >/dev/null)
    # As a user's program finds it: not below the folder of the package, which Node would take instead.
    used=$(mktemp -d)
    (cd "$used" && npm install --silent --no-audit --no-fund --no-save --prefix . "$folder/annals-client-$VERSION.tgz" &&
        node --input-type=module --eval 'await import("annals-client")') ||
        die "annals-client-$VERSION.tgz cannot be installed and imported"
    rm -rf "$source" "$used"
}

# stage FOLDER: fills it.
stage() {
    local folder=$1 built=${CARGO_TARGET_DIR:-target}/$PROFILE program part
    mkdir -p "$folder/bin" "$folder/include" "$folder/lib" "$folder/ops" "$folder/share/annals"
    for program in $PROGRAMS; do install --strip "$built/$program" "$folder/bin/"; done
    install --strip "$built/lib$LIBRARY.so" "$folder/lib/"
    git archive HEAD:services/client-c/include annals_client.h | tar --extract --directory "$folder/include"
    npm_package "$folder/lib"
    "$folder/bin/annals" manual --out "$folder/share"
    git archive HEAD CHANGELOG.md LICENSE README.md docs | tar --extract --directory "$folder"
    git archive HEAD defs/entities.xml defs/entity_defs defs/services.xml defs/service_defs defs/ledger.xml \
        defs/user_data_objects.xml defs/user_data_object_defs defs/zones |
        tar --extract --directory "$folder/share/annals"
    for part in $OPERATORS; do git archive HEAD "ops/$part" | tar --extract --directory "$folder"; done
    sboms "$folder/sbom"
    printf 'version %s\ncommit %s\nschema %s\ntarget %s\nprofile %s\n' "$VERSION" "$COMMIT" "$SCHEMA" "$TARGET" "$PROFILE" \
        >"$folder/RELEASE"
}

# The release of the commit that is checked out.
dist() {
    cd "$(dirname "$0")/.."
    [ -z "$(git status --porcelain)" ] || die "there are changes without a commit, and a release names its commit: commit or stash them"
    COMMIT=$(git rev-parse --short=12 HEAD)
    VERSION=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
    SCHEMA=$(sed -n 's/^pub const SCHEMA: &str = "\(.*\)";/\1/p' defs/game/src/defs.rs)
    TARGET=$(rustc --version --verbose | sed -n 's/^host: //p')
    local seconds folder=$PWD/target/dist/annals-$VERSION-$TARGET packages=()
    seconds=$(git log -1 --format=%ct)
    grep -q "^## $VERSION" CHANGELOG.md || die "CHANGELOG.md has no section \"## $VERSION\"; write what changed"
    need_cyclonedx
    need_npm
    for package in $PACKAGES; do packages+=(-p "$package"); done
    export SOURCE_DATE_EPOCH=$seconds
    say "building annals $VERSION, commit $COMMIT, for $TARGET (profile $PROFILE; minutes at first)"
    ANNALS_COMMIT=$COMMIT ANNALS_SCHEMA=$SCHEMA "$CARGO" build --locked --quiet --profile "$PROFILE" --bins "${packages[@]}"
    "$CARGO" build --locked --quiet --profile "$PROFILE" --lib -p "$LIBRARY_PACKAGE"
    rm -rf "$folder" "$folder".tar.gz*
    stage "$folder"
    # Without -q: grep would stop reading, and the program fail.
    "$folder/bin/annals" defs describe "$folder/share/annals/defs" --format json |
        grep "\"fingerprint\": *\"$SCHEMA\"" >/dev/null ||
        die "the programs were built for the schema $SCHEMA, and defs/ has another one: generate defs/game/src/defs.rs again"
    pack "$folder" "$seconds"
    verify "$folder.tar.gz" "$VERSION (commit $COMMIT"
    cat "$folder/RELEASE"
    (cd "$folder" && du -sh bin docs include lib ops sbom share | sed 's/^/  /')
    say "made target/dist/$(basename "$folder").tar.gz, $(stat --format %s "$folder.tar.gz") bytes"
    say "made target/dist/$(basename "$folder").tar.gz.sha256: $(cut -c -64 "$folder.tar.gz.sha256")"
}

case ${1:-} in
    '') dist ;;
    pack) [ $# = 3 ] || die "usage: ops/dist.sh pack FOLDER SECONDS"; pack "$2" "$3" ;;
    verify) [ $# = 3 ] || die "usage: ops/dist.sh verify ARCHIVE TEXT"; verify "$2" "$3" ;;
    *) die "there is no command $1; pack, verify, or none" ;;
esac
