#!/usr/bin/env bash
# t1030-certs.sh - msctl certs: an authority in files; and scripts/quickstart's words about a wrong folder
# shellcheck disable=SC2016 # the texts for bash -c and python expand there
. "$(dirname "$0")/lib.sh"
need "$MSCTL" openssl python3
cd "$T" || exit 99

certs() { "$MSCTL" certs --dir "$T/ca" "$@"; }

ok "init makes an authority" certs init
ok "its key is the owner's alone" [ "$(stat -c %a ca/ca.key)" = 600 ]
ok "in a directory that is, too" [ "$(stat -c %a ca)" = 700 ]
ok "a second one is refused with 4" status 4 certs init
ok "issue names the file and the serial" says "node7.p12: worker node7" certs issue worker node7
ok "the file is the owner's alone" [ "$(stat -c %a node7.p12)" = 600 ]
ok "an existing file is refused with 4" status 4 certs issue worker node7
ok "unless --force says so" certs issue worker node7 --force
ok "show names the identity" says "ms://worker/node7" certs show node7.p12
ok "and the host" says "node7" certs show node7.p12
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
ok "revoke makes a CRL" certs revoke node7.p12 --out crl.pem
ok "that openssl heeds" bash -c '! openssl verify -CAfile ca/ca.crt -crl_check -CRLfile crl.pem node7.crt 2>/dev/null'
ok "a role that is none comes with the nearest" says "did you mean 'worker'" certs issue worke x
ok "a name with a slash is refused with 2" status 2 certs issue worker a/b
ok "an action that is none comes with the nearest" says "did you mean 'issue'" certs isue worker x
ok "no authority there is said" says "$T/nowhere" "$MSCTL" certs --dir "$T/nowhere" issue worker x
ok "days have a range" says "1 to 36500" certs issue worker x --days 0

# ---- the data set of quickstart, and its words
ok "dataset writes CIFAR-10's layout" "$MSCTL" dataset shapes d --train 120 --test 30
ok "of 3073 bytes an image" [ "$(stat -c %s d/data_batch_1.bin d/test_batch.bin | paste -sd' ')" = "368760 92190" ]
"$MSCTL" dataset shapes e --train 120 --test 30 >/dev/null
ok "twice the same" cmp d/data_batch_1.bin e/data_batch_1.bin
ok "another seed draws others" bash -c '"$MSCTL" dataset shapes f --train 120 --test 30 --seed 2 >/dev/null &&
    ! cmp -s d/data_batch_1.bin f/data_batch_1.bin'
ok "a data set that is none is refused with 2" status 2 "$MSCTL" dataset squares d
ok "quickstart names the file that is missing" says "d has no data_batch_2.bin" "$ROOT/scripts/quickstart" "$T/d"
ok "and a folder that is missing" says "nowhere is no directory" "$ROOT/scripts/quickstart" nowhere
ok "test refuses what it does not know" status 2 "$ROOT/scripts/test" --everything

# ---- completion
completes() {
    bash -c '. "$ROOT/cli/msctl.bash"
        COMP_WORDS=("$MSCTL" "${@:2}") COMP_CWORD=$(($# - 1))
        _msctl
        printf "%s\n" "${COMPREPLY[@]}" | tee /dev/stderr | grep -qxe "$1"' - "$@"
}
ok "bash completes commands" completes submit sub
ok "options of all commands" completes --server --ser
ok "options of a command" completes --run-dir run --ru
ok "files" completes ca run c

finish
