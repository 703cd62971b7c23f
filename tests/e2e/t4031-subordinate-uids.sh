#!/usr/bin/env bash
# t4031-subordinate-uids.sh - processes of a user namespace are the account that /etc/subuid names, as user_map
# and the system call it; root's containers are not root
if [ -z "${MSCHED_OWN_MOUNTS:-}" ]; then
    if ! unshare --mount true 2>/dev/null || [ ! -e /etc/subuid ]; then
        echo "1..0 # SKIP this needs root, mounts of its own and an /etc/subuid to mount over"
        exit 0
    fi
    MSCHED_OWN_MOUNTS=1 exec unshare --mount bash "$0"
fi
. "$(dirname "$0")/lib.sh"
need "$MSSCHEDD" "$MSCTL" python3 setpriv
. "$(dirname "$0")/standing.sh"

chmod 755 "$T"
cp "$MSCTL" "$T/msctl" # where other uids can reach it
make_job job 9 1
chmod 644 "$T/job.yaml"
cp /etc/passwd "$T/passwd"
printf '%s:x:%s:65534::/:/bin/false\n' msalice 7000 msbrown 7001 'corp\eve' 700007 >>"$T/passwd"
cat >"$T/subuid" <<'END'
msalice:700000:65536
msbrown:765536:65536
7002:831072:65536
root:900000:65536
nosuchuser:965536:65536
msalice:1100000:99999999999999999999
END
chmod 644 "$T/passwd" "$T/subuid"
mount --bind "$T/passwd" /etc/passwd || skip_all "cannot mount over /etc/passwd"
mount --bind "$T/subuid" /etc/subuid || skip_all "cannot mount over /etc/subuid"
case $(getent passwd 7001) in
msbrown:*) ;;
*) skip_all "the system's user database is not /etc/passwd" ;;
esac

as_uid() { # UID word...
    local as=$1
    shift
    setpriv --reuid "$as" --regid 65534 --clear-groups \
        "$T/msctl" --config "$T/empty.conf" --server "unix:$T/a.sock" "$@"
}
owner_is() { json show "$1" -- "j['owner'] == '$2'"; }
n=0
comes_as() { # UID PRINCIPAL
    n=$((n + 1))
    as_uid "$1" submit "$T/job.yaml" >/dev/null && owner_is "$n" "$2"
}
HEAD=unix:$T/a.sock
echo "user_map = al=7000 msalice=7001" >"$T/a.conf"
start a "$MSSCHEDD" --config "$T/a.conf" --listen none --tls off --socket "$T/a.sock" --database "$T/a.db"
ok "the scheduler serves" wait_for 60 ready a
chmod 666 "$T/a.sock"

ok "an account is what user_map says" comes_as 7000 user:al
ok "and so is each of its subordinate uids" comes_as 700005 user:al
ok "an account in that range is itself, by whatever name" comes_as 700007 uid:700007
ok "another account is" comes_as 7001 user:msalice
ok "so are its" comes_as 831071 user:msalice
ok "whose login is the other's name cannot cancel for him" status 4 as_uid 700005 cancel 4
ok "a subordinate uid of the owner can" as_uid 765536 cancel 4
ok "an owner by number without a name is his number" comes_as 831072 uid:7002
ok "for all of them" comes_as 896607 uid:7002
ok "root's containers are not root" comes_as 900007 uid:900000
ok "but one stranger" comes_as 965535 uid:900000
ok "who may not cancel for another" status 4 as_uid 900000 cancel 1
ok "nobody's range is a stranger, too" comes_as 965537 uid:965536
ok "a range beyond all uids is none" comes_as 1100001 uid:1100001

# ---- at a reload ----
start watching setpriv --reuid 700009 --regid 65534 --clear-groups \
    "$T/msctl" --config "$T/empty.conf" --server "unix:$T/a.sock" events --follow
start staying setpriv --reuid 831074 --regid 65534 --clear-groups \
    "$T/msctl" --config "$T/empty.conf" --server "unix:$T/a.sock" events --follow
ok "subordinate uids watch" wait_for 60 grep -q job.submitted "$T/watching.log"
ok "several" wait_for 60 grep -q job.submitted "$T/staying.log"
echo "user_map = alfred=7000 msbrown=7003" >"$T/a.conf"
kill -HUP "${pid_of[a]}"
ok "who would be somebody else by his account's new name is out" \
    wait_for 60 logged a "who came as user:al is user:alfred now"
ok "and comes as that" comes_as 700009 user:alfred
ok "who is the same as before stays" bash -c '! grep -q "came as uid:7002" "$1"' - "$T/a.log"
ok "two accounts of one name are one owner" comes_as 765540 user:msbrown
ok "which is said" logged a "user.shared name=msbrown uid=7001 mapped=7003"
ok "once" comes_as 765541 user:msbrown
ok "and no more" bash -c '[ "$(grep -c user.shared "$1")" = 1 ]' - "$T/a.log"
ok "a check says it before" says "user.shared name=msbrown uid=7001 mapped=7003" \
    "$MSSCHEDD" --config "$T/a.conf" --listen none --tls off --check-config
echo "user_map = msalice=7000 msbrown=7001 bob=7003 bob=7004" >"$T/b.conf"
ok "and nothing where none is shared" bash -c '! "$@" --check-config 2>&1 | grep user.shared' - \
    "$MSSCHEDD" --config "$T/b.conf" --listen none --tls off
stop watching
stop staying
stop a
finish
