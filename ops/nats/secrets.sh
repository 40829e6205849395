#!/bin/sh
# Makes the secrets of a realm's connections to its nats-servers, in a new folder: an authority, a certificate for the
# servers and one for each service, and passwords. docs/deploying.md says which file goes where. Needs openssl 3.
#
#   ops/nats/secrets.sh DIR HOST[,HOST...]      HOST: the names or addresses under which services reach the servers
#   ops/nats/secrets.sh --renew DIR HOST[,...]  new certificates of the present authority; passwords stay
#   ops/nats/secrets.sh --next-authority DIR    another authority, trusted beside the former; --renew signs with it
#   ops/nats/secrets.sh --only-authority DIR    the present authority is the only one that is trusted
set -eu
umask 077

usage() { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }

TASK=make
case ${1:-} in
    --renew | --next-authority | --only-authority) TASK=${1#--}; shift ;;
    -*) usage ;;
esac
case $TASK in
    make | renew) [ $# -eq 2 ] || usage; HOSTS=$2 ;;
    *) [ $# -eq 1 ] || usage ;;
esac
DIR=$1
USERS="director db login base cell signer console operator"
# An authority lasts ten years, a certificate 90 days: renew them monthly.
AUTHORITY_DAYS=3650
CERTIFICATE_DAYS=${CERTIFICATE_DAYS:-90}

if [ "$TASK" = make ] && [ -e "$DIR" ]; then
    echo "secrets.sh: $DIR exists; name a new folder, or --renew to renew its certificates" >&2
    exit 2
fi
if [ "$TASK" != make ] && [ ! -f "$DIR/authority/ca.key" ]; then
    echo "secrets.sh: $DIR/authority/ca.key does not exist; name the folder of the first call" >&2
    exit 2
fi
command -v openssl >/dev/null || { echo "secrets.sh: openssl is missing; install it" >&2; exit 2; }

say() { echo "secrets.sh: $*"; }

# certificate NAME SUBJECT-ALTERNATIVE-NAMES USAGE FILE
certificate() {
    openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -subj "/CN=$1" \
        -addext "subjectAltName=$2" -addext "extendedKeyUsage=$3" -keyout "$4.key.new" -out "$4.csr" 2>/dev/null
    openssl x509 -req -in "$4.csr" -CA "$DIR/authority/ca.pem" -CAkey "$DIR/authority/ca.key" \
        -days "$CERTIFICATE_DAYS" -copy_extensions copyall -out "$4.pem.new" 2>/dev/null
    mv "$4.key.new" "$4.key"
    mv "$4.pem.new" "$4.pem"
    rm "$4.csr"
}

password() { openssl rand -hex 32; }

# authority KEY FILE: its name has a number, since certificates name the authority that signed them.
authority() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -days "$AUTHORITY_DAYS" \
        -subj "/CN=Annals realm $(openssl rand -hex 4)" -addext "basicConstraints=critical,CA:TRUE" \
        -addext "keyUsage=critical,keyCertSign,cRLSign" -keyout "$1" -out "$2" 2>/dev/null
}

# The authorities go to everybody who checks certificates.
trust() {
    cp "$DIR/authority/ca.pem" "$DIR/nats/tls/ca.pem"
    cp "$DIR/authority/ca.pem" "$DIR/services/ca.pem"
}

mkdir -p "$DIR/authority" "$DIR/nats/tls" "$DIR/services"
case $TASK in
    # The authority's key is needed for renewal only: keep it away from all machines of the realm.
    make) authority "$DIR/authority/ca.key" "$DIR/authority/ca.pem" ;;
    next-authority)
        authority "$DIR/authority/ca.key.new" "$DIR/authority/ca.pem.next"
        # openssl signs with the first one.
        cat "$DIR/authority/ca.pem.next" "$DIR/authority/ca.pem" >"$DIR/authority/ca.pem.new"
        rm "$DIR/authority/ca.pem.next"
        mv "$DIR/authority/ca.pem.new" "$DIR/authority/ca.pem"
        mv "$DIR/authority/ca.key.new" "$DIR/authority/ca.key"
        trust
        say "copy services/ca.pem and nats/tls/ca.pem of $DIR, send SIGHUP to the nats-servers, then --renew"
        exit ;;
    only-authority)
        # Nobody could connect with a certificate of another one.
        openssl x509 -in "$DIR/authority/ca.pem" -out "$DIR/authority/ca.pem.first"
        for FILE in "$DIR/nats/tls/server.pem" "$DIR"/services/*.pem; do
            [ "$FILE" != "$DIR/services/ca.pem" ] || continue
            if ! openssl verify -CAfile "$DIR/authority/ca.pem.first" "$FILE" >/dev/null 2>&1; then
                rm "$DIR/authority/ca.pem.first"
                echo "secrets.sh: the present authority has not signed $FILE; --renew first, and copy the files" >&2
                exit 2
            fi
        done
        rm "$DIR/authority/ca.pem.first"
        openssl x509 -in "$DIR/authority/ca.pem" -out "$DIR/authority/ca.pem.new"
        mv "$DIR/authority/ca.pem.new" "$DIR/authority/ca.pem"
        trust
        say "copy services/ca.pem and nats/tls/ca.pem of $DIR, and send SIGHUP to the nats-servers"
        exit ;;
esac

NAMES=$(echo "$HOSTS" | tr ',' '\n' | sed -E 's/^[0-9.]+$/IP:&/; t; s/^.*:.*$/IP:&/; t; s/^/DNS:/' | paste -sd, -)
certificate nats-server "$NAMES" serverAuth,clientAuth "$DIR/nats/tls/server"
trust
for USER in $USERS; do
    certificate "annals-$USER" "DNS:annals-$USER" clientAuth "$DIR/services/$USER"
done

if [ "$TASK" = make ]; then
    for USER in $USERS reports; do
        SECRET=$(password)
        echo "$(echo "$USER" | tr 'a-z' 'A-Z')_PASSWORD: \"$SECRET\"" >>"$DIR/nats/passwords.conf"
        if [ "$USER" = reports ]; then
            echo "$HOSTS" | tr ',' '\n' | sed "s|.*|nats://reports:$SECRET@&:4222|" | paste -sd, - >"$DIR/services/director.system"
        else
            echo "$USER:$SECRET" >"$DIR/services/$USER.credentials"
        fi
    done
    say "made the secrets of a realm in $DIR; keep $DIR/authority offline"
else
    say "renewed the certificates in $DIR; copy them, and send SIGHUP to the nats-servers"
fi
