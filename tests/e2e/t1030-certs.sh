#!/usr/bin/env bash
# t1030-certs.sh - msctl certs: an authority in files; and scripts/quickstart's words about a wrong folder
# shellcheck disable=SC2016 # the texts for bash -c and python expand there
. "$(dirname "$0")/lib.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" openssl ninja python3
cd "$T" || exit 99

certs() { "$MSCTL" certs --dir "$T/ca" "$@"; }

# before there is one, or with a typo in --dir; and what a kill -9 of init leaves
mkdir empty half
cp /dev/null half/ca.key
chmod 600 half/ca.key
for action in "issue worker node7" "list" "crl" "revoke node7" "renew node7"; do
    ok "without an authority: $action" bash -c '"$MSCTL" certs --dir empty $1 2>&1 | grep -q "no authority in empty.*certs init"' - "$action"
    ok "with half of one: $action" bash -c '"$MSCTL" certs --dir half $1 2>&1 | grep -q "ca.crt is missing"' - "$action"
    # shellcheck disable=SC2086 # words
    ok "ends with 4: $action" status 4 "$MSCTL" certs --dir empty $action
done
ok "nothing was made there" bash -c '[ -z "$(ls -A empty)" ] && [ "$(ls half)" = ca.key ]'
ok "show of what is no certificate ends with 2" status 2 "$MSCTL" certs show /etc/hostname

ok "init makes an authority" certs init
ok "what comes next names that authority" says "certs issue scheduler THIS-HOST -d $T/two" "$MSCTL" certs init -d "$T/two"
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null && [ ! -e /etc/msched ]; then
    ok "who may not write the system's is told of sudo and -d" says "sudo, or -d DIR" setpriv --reuid 65534 --regid 65534 --clear-groups \
        env HOME=/ "$MSCTL" certs init
fi
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
    as_nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
    mkdir -m 0751 roots
    "$MSCTL" certs --dir "$T/two" issue worker w1 --out w1.p12 >/dev/null
    "$MSCTL" certs --dir "$T/two" crl >/dev/null
    install -m 600 -o 65534 w1.p12 roots/w1.p12
    install -m 644 two/crl.pem two/ca.crt roots
    install -m 640 w1.p12 roots/node.p12
    chmod 755 "$T"
    ok "a daemon's certificate without sudo" says "cannot write in the folder $T/roots: Permission denied: sudo, or --to DIR" \
        as_nobody "$MSCTL" certs install roots/w1.p12 --to "$T/roots"
    ok "--force mends nothing there" says "Permission denied: sudo, or --to DIR" as_nobody "$MSCTL" certs install roots/w1.p12 --to "$T/roots" --force
    ok "a folder that cannot be made" says "Permission denied: sudo, or --to DIR" as_nobody "$MSCTL" certs install roots/w1.p12 --to "$T/roots/in/it"
    ok "a list without sudo" says "Permission denied: sudo, or --to DIR" as_nobody "$MSCTL" certs install roots/crl.pem --to "$T/roots"
fi
ok "its key is the owner's alone" [ "$(stat -c %a ca/ca.key)" = 600 ]
ok "in a directory that is, too" [ "$(stat -c %a ca)" = 700 ]
ok "a second one is refused with 4" status 4 certs init
ok "issue names the file and the serial" says "node7.p12: worker node7" certs issue worker node7
ok "the file is the owner's alone" [ "$(stat -c %a node7.p12)" = 600 ]
ok "an existing file is refused with 4" status 4 certs issue worker node7
ok "unless --force says so" certs issue worker node7 --force
ok "show names the identity" says "ms://worker/node7" certs show node7.p12
ok "and the host" says "node7" certs show node7.p12
ok "also of what comes from a pipe" bash -c 'cat ca/ca.crt | "$MSCTL" certs show /dev/stdin | grep -q "^subject" &&
    cat node7.p12 | "$MSCTL" certs show /dev/stdin | grep -q ms://worker/node7'
ok "and settings" says "unix:$T/none.sock" bash -c '"$MSCTL" --config <(echo "server = unix:$1/none.sock") jobs' - "$T"
ok "as JSON" bash -c '"$MSCTL" certs --json show node7.p12 | python3 -c "
import json, sys
j = json.load(sys.stdin)
assert j[\"uri\"] == \"ms://worker/node7\" and j[\"not_after\"] > j[\"not_before\"]"'
ok "hosts can be given" certs issue scheduler head --host head.example --host 10.0.0.1 --out s.p12
ok "and are in it" says "10.0.0.1" certs show s.p12
echo secret >password
chmod 600 password
ok "a password comes from a file" certs issue user ann --password-file password
ok "openssl opens it with that" openssl pkcs12 -in ann.p12 -passin pass:secret -nodes -noout
ok "and not without" bash -c '! openssl pkcs12 -in ann.p12 -passin pass: -nodes -noout 2>/dev/null'
chmod 644 password
ok "a password file that others can read is refused" bash -c '! "$MSCTL" certs --dir ca issue user eve --password-file password'
ok "the chain verifies" bash -c '
    openssl pkcs12 -in node7.p12 -passin pass: -nodes -clcerts -nokeys 2>/dev/null | openssl x509 >node7.crt &&
    openssl verify -CAfile ca/ca.crt node7.crt'
ok "list has what was issued" says "node7  worker  valid" certs list node7
ok "and the first one, whose file was replaced, too" [ "$(certs list node7 | grep -c valid)" = 2 ]
ok "as JSON" bash -c '"$MSCTL" certs --dir ca --json list | python3 -c "
import json, sys
rows = json.load(sys.stdin)
assert [r[\"name\"] for r in rows] == [\"ann\", \"head\", \"node7\", \"node7\"], rows
assert rows[1][\"hosts\"] == \"head.example,10.0.0.1\" and rows[1][\"state\"] == \"valid\""'
ok "a name that nobody has is said" status 4 certs list nobody
ok "renew makes another like it" says "worker node7" certs renew node7 --out node7b.p12
ok "with its hosts" says "node7" certs show node7b.p12
ok "renew replaces no file unless told to" status 4 certs renew node7 --out node7b.p12
ok "revoke by file makes a list where the authority is" certs revoke node7.p12 --out lists.pem
ok "which is a copy, not in whatever folder we are" bash -c '[ -s ca/lists.pem ] && [ ! -e lists.pem ]'
ok "that openssl heeds" bash -c '! openssl verify -CAfile ca/ca.crt -crl_check -CRLfile ca/lists.pem node7.crt 2>/dev/null'
ok "and of the authority's own" bash -c '! openssl verify -CAfile ca/ca.crt -crl_check -CRLfile ca/crl.pem node7.crt 2>/dev/null'
ok "revoke by name takes the others" says "node7: 2 certificates revoked" certs revoke node7
ok "all of them" [ "$(certs list node7 | grep -c revoked)" = 3 ]
hosts=()
for i in $(seq 20); do hosts+=(--host "h$i.example"); done
ok "as many hosts as somebody has" certs issue worker many "${hosts[@]}"
ok "are in it, the last one too" says "h20.example" certs show many.p12
for i in $(seq 21 65); do hosts+=(--host "h$i.example"); done
ok "more than a certificate holds are refused" bash -c '! "$@" && "$@" 2>&1 | grep -q "more than 64 hosts"' - "$MSCTL" certs --dir ca issue worker more "${hosts[@]}"
ok "a dash is no host" status 2 certs issue worker dash --host -
if command -v strace >/dev/null; then
    ok "a kill -9 while a key is written leaves no copy of it" bash -c '
        mkdir killed && for call in fsync linkat rename; do
            strace -qq -o /dev/null -e trace=$call -e inject=$call:signal=KILL "$MSCTL" certs --dir ca issue user eve -o killed/eve.p12 --force
        done; "$MSCTL" certs --dir ca issue user eve -o killed/eve.p12 --force && [ "$(ls -A killed)" = eve.p12 ]'
fi
serial=$(certs list head | awk 'NR == 2 { print $5 }')
ok "revoke by serial number" says "1 certificate revoked" certs revoke "$(tr "[:upper:]" "[:lower:]" <<<"$serial")"
ok "again only makes the list anew" says "was revoked already" certs revoke "$serial"
ok "what is revoked is not renewed" says "is revoked" certs renew node7 --out x.p12
ok "what nobody has is not revoked" says "msctl certs list" certs revoke nobody
ok "crl makes the list anew" says "crl.pem" certs crl --days 7
ok "which holds all that was revoked" [ "$(openssl crl -in ca/crl.pem -noout -text | grep -c 'Serial Number')" = 4 ]
rm ca/index.txt # as 0.1 left it
ok "an authority of an older msctl gets an index" says "revoked" certs list
ok "which says since when, and what is older" says "is not in the index" certs list
ok "a name that is only older says so, too" bash -c '"$MSCTL" certs --dir ca revoke bob 2>&1 | grep -q "since the index is kept"'
ok "its serial number is enough" says "1 certificate revoked" certs revoke 57D86069D5A76ECFCFE86B58A0E64EDF
ok "and in the list" bash -c 'openssl crl -in ca/crl.pem -noout -text | grep -qi 57D86069D5A76ECFCFE86B58A0E64EDF'
ok "and still revokes by file" says "1 certificate revoked" certs revoke ann.p12 --password-file <(cat password)
cert_of() { openssl pkcs12 -in "$1" -passin pass: -nodes -clcerts -nokeys 2>/dev/null | openssl x509 -noout "${@:2}"; }

# ---- install: one file travels
certs issue user bob >/dev/null
ok "install puts a user's into his folder" env XDG_CONFIG_HOME="$T/home" "$MSCTL" certs install bob.p12
ok "his alone" [ "$(stat -c %a home/msched home/msched/client.p12 | paste -sd' ')" = "700 600" ]
ok "with its CA" cmp ca/ca.crt home/msched/ca.crt
ok "the same certificate" [ "$(cert_of bob.p12 -serial)" = "$(cert_of home/msched/client.p12 -serial)" ]
if [ "$(id -u)" = 0 ]; then
    install -d -m 0700 -o nobody -g nogroup of_nobody
    ok "into somebody's folder root puts what he can use" "$MSCTL" certs install bob.p12 --to of_nobody
    ok "it is his" [ "$(stat -c %U:%G:%a of_nobody/client.p12)" = "nobody:nogroup:600" ]
    ok "a folder that is not there he makes himself" says "sudo -u nobody mkdir -p -m 700" "$MSCTL" certs install bob.p12 --to of_nobody/.config/msched
    ok "and nothing of root's is in his way" [ ! -e of_nobody/.config ]
fi
certs issue user carol >/dev/null
ok "somebody else's is not replaced" status 4 env XDG_CONFIG_HOME="$T/home" "$MSCTL" certs install carol.p12
ok "unless --force says so" env XDG_CONFIG_HOME="$T/home" "$MSCTL" certs install carol.p12 --force
ok "ca.crt is readable under any umask" bash -c 'umask 077; XDG_CONFIG_HOME=$1/strict "$MSCTL" certs install bob.p12 &&
    [ "$(stat -c %a "$1/strict/msched/ca.crt")" = 644 ]' - "$T"
ok "revoke says how the list gets everywhere" says "msctl certs install $T/ca/crl.pem && sudo systemctl try-reload-or-restart" certs revoke carol
ok "a list of revoked ones is installed beside ca.crt" says "is in $T/home/msched/crl.pem" "$MSCTL" certs install ca/crl.pem --to "$T/home/msched"
ok "it is that one" cmp ca/crl.pem home/msched/crl.pem
ok "as JSON" says '"folders":["'"$T/home/msched"'"]' "$MSCTL" --json certs install ca/crl.pem --to "$T/home/msched"
cp ca/crl.pem older.pem
certs crl >/dev/null
ok "a newer one is installed" "$MSCTL" certs install ca/crl.pem --to "$T/home/msched"
ok "an older one is refused with 4" status 4 "$MSCTL" certs install older.pem --to "$T/home/msched"
ok "a list that comes from a pipe is installed, too" bash -c 'mkdir piped && cp ca/ca.crt piped && cat ca/crl.pem | "$MSCTL" certs install /dev/stdin --to piped &&
    cmp ca/crl.pem piped/crl.pem && "$MSCTL" certs install <(cat ca/crl.pem) --to piped'
ok "and a certificate" bash -c 'mkdir piped2 && cat bob.p12 | "$MSCTL" certs install /dev/stdin --to piped2 && cmp bob.p12 piped2/client.p12'
head -c 500 bob.p12 >cut.p12
chmod 600 cut.p12
ok "one that was copied in part is said to be cut off" says "cut.p12 is cut off, 500 of" "$MSCTL" certs install cut.p12 --to piped2
ok "a CA's own says what is installed instead" says "a CA's certificate in PEM form" "$MSCTL" certs install ca/ca.crt --to piped2
ok "show of a list says what shows it" says "openssl crl -noout -text -in ca/crl.pem" "$MSCTL" certs show ca/crl.pem
ok "where no CA is, there is nothing to judge by" status 4 "$MSCTL" certs install ca/crl.pem --to "$T/empty"
ok "what is no list and no certificate is not waited for" bash -c 'mkfifo "$1/list.fifo" && timeout 600 "$MSCTL" certs install "$1/list.fifo"; [ $? != 124 ]' - "$T"

# a CA that is made anew beside the list of the old one, and a folder with that list
mkdir anew
cp ca/crl.pem anew
"$MSCTL" certs --dir "$T/ca-anew" init >/dev/null
"$MSCTL" certs --dir "$T/ca-anew" issue user dora >/dev/null
cp ca/ca.crt anew
ok "another CA's certificate needs --force" status 4 "$MSCTL" certs install dora.p12 --to anew
ok "and what its list is, and what helps, is said" says "anew/crl.pem is the list of another CA, and no program starts beside it: where the CA is: msctl certs crl; here: msctl certs install crl.pem --to anew, or remove" \
    "$MSCTL" certs install dora.p12 --to anew --force
ok "until the list is its own" bash -c '"$MSCTL" certs --dir ca-anew crl >/dev/null && "$MSCTL" certs install ca-anew/crl.pem --to anew &&
    ! "$MSCTL" certs install dora.p12 --to anew 2>&1 | grep "another CA"'

# ---- all programs of a host: its folder of settings is ours in a namespace of mounts
system=$(sed -n 's/^#define MSCHED_SYSCONFDIR "\(.*\)"/\1/p' "$BUILD/config.h")
mount_over=$system
[ -d "$system" ] || mount_over=${system%/*} # a folder of programs installed by hand, and nobody else's
mkdir -p "$T/etc/msched" "$T/wtls"
[ "$mount_over" = "$system" ] && etc=$T/etc || etc=$T/etc/msched
on_host() { # COMMAND...
    unshare -rm bash -c 'mount --bind "$1" "$2" && shift 2 && "$@"' - "$T/etc" "$mount_over" "$@"
}
if [ "$mount_over" != /etc ] && on_host test -d "$system" 2>/dev/null; then
    "$MSCTL" certs --dir "$T/before" init >/dev/null
    mkdir "$etc/tls" "$etc/tls-old" "$etc/tls-worker"
    cp before/ca.crt "$etc/tls-old"
    for folder in "$etc/tls" "$etc/tls-worker" wtls; do cp ca/ca.crt "$folder"; done
    printf 'tls_ca = %s\ntls_crl = %s\n' "$T/wtls/ca.crt" "$T/wtls/revoked.pem" >"$etc/msschedd.conf"
    printf 'tls_dir = "%s" # in quotes\n' "$T/wtls" >"$etc/msworker.conf"
    ok "the list goes wherever it is looked for" on_host "$MSCTL" certs install ca/crl.pem
    for list in "$etc/tls/crl.pem" "$etc/tls-worker/crl.pem" wtls/crl.pem wtls/revoked.pem; do
        ok "${list#"$T"/} is that list" cmp ca/crl.pem "$list"
    done
    ok "a folder of another CA is left alone" [ ! -e "$etc/tls-old/crl.pem" ]
    ok "and named" says "left alone: $system/tls-old/crl.pem" on_host "$MSCTL" certs install ca/crl.pem
    "$MSCTL" certs --dir "$T/third" init >/dev/null
    "$MSCTL" certs --dir "$T/third" crl >/dev/null
    ok "a list of nobody's CA is installed nowhere, with 4" status 4 on_host "$MSCTL" certs install third/crl.pem

    # one of the two programs' settings hold nobody up, and one place that fails is not the end
    rm "$etc/tls/crl.pem" "$etc/tls-worker/crl.pem" "$etc/msschedd.conf"
    mkdir "$etc/tls/crl.pem"
    mkfifo "$etc/msschedd.conf"
    python3 -c 'print("tls_dir=" + "/" * 1070)' >"$etc/msworker.conf"
    ok "a place that cannot be written ends it with 1" status 1 on_host timeout 600 "$MSCTL" certs install ca/crl.pem
    ok "those behind it have the list" cmp ca/crl.pem "$etc/tls-worker/crl.pem"
    rmdir "$etc/tls/crl.pem"
    ok "a FIFO for a file of settings is named" says "msschedd.conf is no regular file" on_host timeout 600 "$MSCTL" certs install ca/crl.pem
    ok "and the rest is done" cmp ca/crl.pem "$etc/tls/crl.pem"

    # a scheduler that is told of no list heeds none, wherever it lies; and a link leads to where others have it from
    rm "$etc/msschedd.conf" "$etc/msworker.conf"
    echo "tls_config = $T/wtls/tls.json" >"$etc/msschedd.conf"
    echo '{"server_cert_path": "node.p12", "ca_cert_path": "ca.crt"}' >wtls/tls.json
    ok "a TLS JSON without a list is no success" status 2 on_host "$MSCTL" certs install ca/crl.pem
    ok "which is said, with what helps" says 'write "crl_path": "'"$T/wtls/crl.pem" on_host "$MSCTL" certs install ca/crl.pem
    echo '{"server_cert_path": "node.p12", "ca_cert_path": "ca.crt", "crl_path": "crl.pem"}' >wtls/tls.json
    cp ca/crl.pem shared.pem
    ln -sf ../shared.pem wtls/crl.pem
    certs crl >/dev/null
    ok "with one it is" says "wtls/crl.pem, which leads to $T/shared.pem" on_host "$MSCTL" certs install ca/crl.pem
    ok "and what the link leads to is that list" cmp ca/crl.pem shared.pem
fi
ok "a role that is none comes with the nearest" says "did you mean 'worker'" certs issue worke x
ok "a name with a slash is refused with 2" status 2 certs issue worker a/b
ok "one with a control character, too" status 2 certs issue user "$(printf 'a\033[2J')"
ok "and one that looks like an option" status 2 certs issue user .x
ok "an action that is none comes with the nearest" says "did you mean 'issue'" certs isue worker x
ok "no authority there is said" says "$T/nowhere" "$MSCTL" certs --dir "$T/nowhere" issue worker x
ok "days have a range" says "1 to 36500" certs issue worker x --days 0

# ---- killed at any moment, a certificate that is in the world is in the index
killed() { # MILLISECONDS NAME
    local pid
    "$MSCTL" certs --dir crash issue user "$2" --out "crash.$2.p12" >/dev/null 2>&1 &
    pid=$!
    sleep "0.00$1"
    kill -KILL $pid 2>/dev/null
    wait $pid 2>/dev/null
}
"$MSCTL" certs --dir crash init >/dev/null
for n in 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9; do
    killed $n "k$((count = ${count:-0} + 1))"
done
indexed() {
    local file
    for file in crash.*.p12; do
        [ ! -e "$file" ] || grep -q "^$("$MSCTL" certs show "$file" | awk '$1 == "serial" { print $2 }')" crash/index.txt ||
            return 1
    done
}
ok "the index can be read after that" "$MSCTL" certs --dir crash list
ok "and has all that got out" indexed
ok "the next one is issued as if nothing had been" "$MSCTL" certs --dir crash issue user after

# ---- the data set of quickstart, and its words
ok "dataset writes CIFAR-10's layout" "$MSCTL" dataset shapes d --train 120 --test 30
ok "of 3073 bytes an image" [ "$(stat -c %s d/data_batch_1.bin d/test_batch.bin | paste -sd' ')" = "368760 92190" ]
"$MSCTL" dataset shapes e --train 120 --test 30 >/dev/null
ok "twice the same" cmp d/data_batch_1.bin e/data_batch_1.bin
ok "another seed draws others" bash -c '"$MSCTL" dataset shapes f --train 120 --test 30 --seed 2 >/dev/null &&
    ! cmp -s d/data_batch_1.bin f/data_batch_1.bin'
ok "what is there is not replaced" status 4 "$MSCTL" dataset shapes f --train 120 --test 30
ok "and named, with the way out" says "replace it with --force" "$MSCTL" dataset shapes f --train 120 --test 30
ok "--force replaces it" "$MSCTL" dataset shapes f --train 120 --test 30 --force
ok "with the drawing that was asked for" cmp d/data_batch_1.bin f/data_batch_1.bin
ok "a data set that is none is refused with 2" status 2 "$MSCTL" dataset squares d
ok "quickstart names the file that is missing" says "d has no data_batch_2.bin" "$ROOT/scripts/quickstart" "$T/d"
ok "and a folder that is missing" says "nowhere is no directory" "$ROOT/scripts/quickstart" nowhere
# a tree whose path has what YAML takes for its own; its build is this one
place="$T/mein, projekt: {ü} #1"
mkdir -p "$place/build/cli" "$place/build/daemon" "$place/build/libworker"
cp -r "$ROOT/scripts" "$ROOT/examples" "$place"
ln -s "$MSCTL" "$place/build/cli"
ln -s "$MSSCHEDD" "$place/build/daemon"
ln -s "$MSWORKER" "$place/build/libworker"
printf 'build cli/msctl daemon/msschedd libworker/msworker: phony\n' >"$place/build/build.ninja"
printf 'packages_missing() { :; }\npackages_build=() packages_scheduler=() packages_worker=()\n' >"$place/scripts/packages.sh"
ok "quickstart trains in a folder of any name" says "saved       $place/build/quickstart/shapes-" \
    bash -c 'cd "$1" && "$2/scripts/quickstart" --set steps=2 --set evaluate=null' - "$T" "$place"
rm -rf "$place"/build/quickstart/shapes-* # of the same second, perhaps
ok "and names the weights as they are found from there" says "saved       build/quickstart/shapes-" \
    bash -c 'cd "$1" && scripts/quickstart --set steps=2 --set evaluate=null' - "$place"
ok "test refuses what it does not know" status 2 "$ROOT/scripts/test" --everything

# ---- completion
completes() {
    bash -c '. "$ROOT/cli/msctl.bash"
        COMP_WORDS=("$MSCTL" "${@:2}") COMP_CWORD=$(($# - 1))
        _msctl
        printf "%s\n" "${COMPREPLY[@]}" | tee /dev/stderr | grep -qxe "$1"' - "$@"
}
ok "bash completes commands" completes submit sub
ok "behind an address, too" completes submit -s head : 8118 sub
ok "options of all commands" completes --server --ser
ok "options of fetch" completes --only fetch 1 --on
ok "and what it brings" completes metrics fetch 1 --only m
ok "options of a command" completes --run-dir run --ru
ok "files" completes ca run c
ok "of a job whose network is shown, too" completes ca show --network c
ok "but not else" status 1 completes ca show c
ok "no commands where an address comes" status 1 completes submit -s sub
ok "actions of certs" completes renew certs ren
ok "roles" completes scheduler certs issue sch

finish
