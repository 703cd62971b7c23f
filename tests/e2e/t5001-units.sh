#!/usr/bin/env bash
# t5001-units.sh - the systemd units are legal, complete and sandboxed
. "$(dirname "$0")/lib.sh"
need systemd-analyze

root=$T/root
units=$root/usr/lib/systemd/system
mkdir -p "$units" "$root/bin"
cp "$BUILD"/systemd/msschedd.service "$BUILD"/systemd/msworker@.service "$ROOT"/systemd/mscluster.target "$units"
cp "$units/msworker@.service" "$units/msworker@0.service"
# what a host has, so that verify complains about ours alone
for unit in sysinit.target basic.target shutdown.target network-online.target multi-user.target; do
    printf '[Unit]\nDescription=%s\nDefaultDependencies=no\n' "$unit" >"$units/$unit"
done
sed -n 's/^Exec[A-Za-z]*=\([^ ]*\).*/\1/p' "$units"/ms*.service | sort -u | while read -r program; do
    mkdir -p "$root/$(dirname "$program")"
    printf '#!/bin/sh\n' >"$root/$program"
    chmod 755 "$root/$program"
done

verify() { systemd-analyze verify --man=no --recursive-errors=no --root="$root" "$@" 2>&1; }
for unit in msschedd.service msworker@0.service mscluster.target; do
    ok "$unit verifies without a word" bash -c '[ -z "$1" ] || { echo "$1"; exit 1; }' - "$(verify "$unit")"
done
ok "a wrong line would be noticed" bash -c '
    sed "s/^Restart=.*/Restart=perhaps/" "$1/msschedd.service" >"$1/wrong.service"
    [ -n "$(systemd-analyze verify --man=no --recursive-errors=no --root="$2" wrong.service 2>&1)" ]' - "$units" "$root"

exposure() {
    systemd-analyze security --offline=true --no-pager "$units/$1" 2>/dev/null |
        sed -n 's/.*exposure level for .*: \([0-9.]*\) .*/\1/p'
}
below() { awk -v got="$1" -v want="$2" 'BEGIN { exit !(got != "" && got + 0 <= want) }'; }
if systemd-analyze security --offline=true "$units/msschedd.service" >/dev/null 2>&1; then
    score=$(exposure msschedd.service)
    ok "msschedd.service is exposed by $score, at most 2.0" below "$score" 2.0
    score=$(exposure msworker@0.service)
    ok "msworker@.service is exposed by $score, at most 2.5" below "$score" 2.5
fi
mkdir "$T/sleeper"
printf '#!/bin/sh\necho "$1"\n' >"$T/sleeper/sleep"
chmod 755 "$T/sleeper/sleep"
slept() { PATH=$T/sleeper:$PATH /bin/sh -c "${1:-echo no such line}"; }
for unit in msschedd.service msworker@.service; do
    ok "$unit: status 78 is not restarted" grep -qE '^RestartPreventExitStatus=(2 )?78$' "$units/$unit"
    ok "$unit comes back at once when it was killed" grep -q '^RestartSec=100ms$' "$units/$unit"
    ok "$unit: whatever was no clean end" grep -q '^Restart=on-failure$' "$units/$unit"
    ok "$unit: however often" grep -q '^StartLimitIntervalSec=0$' "$units/$unit"
    # the words of the unit as systemd gives them to the shell; what it would sleep for
    post=$(sed -n "s/^ExecStopPost=\/bin\/sh -c '\(.*\)'$/\1/p" "$units/$unit" | sed 's/\$\$/$/g')
    ok "$unit: what may pass is not tried ten times a second" [ "$(EXIT_STATUS=75 slept "$post")" = 1 ]
    ok "$unit: nothing else waits" [ "$(EXIT_STATUS=KILL slept "$post")$(EXIT_STATUS=0 slept "$post")" = "" ]
    ok "$unit: no core with a key in it is written" grep -q '^LimitCORE=0$' "$units/$unit"
    ok "$unit runs as its own user" grep -q '^User=msched$' "$units/$unit"
done
ok "the scheduler may ask whose a connection of its host is" grep -q '^RestrictAddressFamilies=.* AF_NETLINK' "$units/msschedd.service"
ok "oneDNN may compile its kernels" bash -c '! grep -q "^MemoryDenyWriteExecute" "$1"' - "$units/msworker@.service"
ok "the group that may use the socket owns nothing" bash -c '! grep -n "msched-users" "$1"' - \
    "$BUILD/systemd/msched.conf"
ok "the user is declared" grep -q '^u msched ' "$ROOT/systemd/msched.sysusers.conf"
if command -v systemd-sysusers >/dev/null; then
    mkdir -p "$root/etc" "$root/usr/lib/sysusers.d"
    cp "$ROOT/systemd/msched.sysusers.conf" "$root/usr/lib/sysusers.d/msched.conf"
    ok "systemd-sysusers makes the user" bash -c 'systemd-sysusers --root="$1" && grep -q "^msched:" "$1/etc/passwd"' - "$root"
fi
if command -v systemd-tmpfiles >/dev/null; then
    mkdir -p "$root/usr/lib/tmpfiles.d"
    cp "$BUILD/systemd/msched.conf" "$root/usr/lib/tmpfiles.d/msched.conf"
    config=$(sed -n 's/^d \(.*\)\/tls 0.*/\1/p' "$BUILD/systemd/msched.conf")
    install -D -m 600 "$ROOT/README.md" "$root$config/tls/ca.crt" # copied under a umask of 077
    ok "systemd-tmpfiles makes the folders" bash -c '
        systemd-tmpfiles --root="$1" --create msched.conf; [ -d "$1/var/lib/msched" ]' - "$root"
    [ "$(id -u)" = 0 ] && # who is not cannot give files to others, and it leaves what it cannot give
        ok "and a ca.crt that everybody can read" [ "$(stat -c %a "$root$config/tls/ca.crt")" = 644 ]
fi
if command -v systemctl >/dev/null; then
    links() { find "$root/etc/systemd/system" -type l -printf '%P\n' | sort | paste -sd' '; }
    ok "enable msworker@0" systemctl --root="$root" enable msworker@0.service
    ok "starts it at boot, and with the target of all workers" \
        [ "$(links)" = "mscluster.target.wants/msworker@0.service multi-user.target.wants/msworker@0.service" ]
    ok "a second slot" systemctl --root="$root" enable msworker@1.service
    ok "disabled again" systemctl --root="$root" disable msworker@1.service
    ok "leaves the first as it was" \
        [ "$(links)" = "mscluster.target.wants/msworker@0.service multi-user.target.wants/msworker@0.service" ]
fi
# The filter of system calls is only believed until the daemon has run under it: every call that it
# makes must be in the unit's list.
calls() { # of a group, one a line
    systemd-analyze syscall-filter "$1" | sed 's/#.*//' | awk 'NR > 1 { print $1 }' | while read -r name; do
        case $name in
        @*) calls "$name" ;;
        ?*) echo "$name" ;;
        esac
    done
}
if command -v strace >/dev/null && strace -o "$T/trace" true 2>/dev/null; then
    start a strace -f -o "$T/trace" "$MSSCHEDD" --config "$T/empty.conf" --listen 127.0.0.1:0 \
        --socket "$T/a.sock" --socket-group "$(id -gn)" --database "$T/a.db" --tls off
    wait_for 60 ready a
    ctl a status >/dev/null
    daemon=$(sed -n 's/.*scheduler\.start .*pid=\([0-9]*\) .*/\1/p' "$T/a.log")
    kill -HUP "$daemon"
    wait_for 60 logged a scheduler.reload
    kill -TERM "$daemon"
    reap a
    sed -n 's/^[0-9]* *\([a-z_0-9]*\)(.*/\1/p' "$T/trace" | sort -u >"$T/used"
    {
        comm -23 <(calls @system-service | sort -u) <({ calls @privileged && calls @resources; } | sort -u)
        printf 'prlimit64\nsetrlimit\n'
        calls @chown
    } | sort -u >"$T/allowed"
    ok "$(wc -l <"$T/used") system calls are used" [ "$(wc -l <"$T/used")" -gt 20 ]
    ok "the unit allows them all" bash -c '[ -z "$(comm -23 "$1/used" "$1/allowed" | tee /dev/stderr)" ]' - "$T"
fi

# what `meson install` puts where; only a whole build can be installed
if meson install -C "$BUILD" --no-rebuild --quiet --destdir "$T/dest" >"$T/install.log" 2>&1; then
    prefix=$(find "$T/dest" -name msschedd -path '*/bin/*' -printf '%h\n' | head -n 1)
    prefix=${prefix%/bin}
    for file in bin/msschedd bin/msworker bin/msctl lib/systemd/system/msschedd.service \
        lib/systemd/system/msworker@.service lib/systemd/system/mscluster.target lib/sysusers.d/msched.conf \
        lib/tmpfiles.d/msched.conf share/man/man8/msschedd.8 share/man/man8/msworker.8 include/msworker.h; do
        ok "$file is installed" [ -f "$prefix/$file" ]
    done
    for file in msschedd.conf msworker.conf msctl.conf; do
        ok "$file is installed" bash -c '[ -n "$(find "$1" -path "*/etc/msched/$2")" ]' - "$T/dest" $file
    done
    # where it was built for: the units start what was installed
    program=$(sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' "$prefix/lib/systemd/system/msschedd.service")
    ok "the unit starts the installed program" [ -x "$T/dest$program" ]
    ok "it runs without the build folder's libraries" "$prefix/bin/msschedd" --version
else
    echo "# this build is not whole, so nothing was installed: $(tail -n 1 "$T/install.log")"
fi
finish
