#!/usr/bin/env bash
# t5020-new-host.sh - docs/operations.md word by word on two fresh hosts with systemd's layout: the lines of its
# code blocks are run as they stand, as root with a umask of 077 and as the users that they speak of; then who
# can read what. A host is a root folder in a mount namespace; both share a network namespace of their own.
if [ -z "${MSCHED_NEW_HOST:-}" ]; then
    unshare --mount --net --uts --pid --fork --kill-child --mount-proc true 2>/dev/null || {
        echo "1..0 # SKIP no namespaces here: this needs root"
        exit 0
    }
    MSCHED_NEW_HOST=1 exec unshare --mount --net --uts --pid --fork --kill-child --mount-proc bash "$0"
fi
. "$(dirname "$0")/lib.sh"
need "$MSSCHEDD" "$MSWORKER" "$MSCTL" systemctl systemd-sysusers systemd-tmpfiles setpriv usermod useradd meson

prefix=$(sed -n 's/^prefix=//p' "$BUILD"/meson-private/msworker.pc)
[ "$prefix" = /usr/local ] || skip_all "this build is for $prefix; only /usr/local can be laid over a host"
config=$prefix/etc/msched
ip link set lo up
hostname head

ok "meson install" env DESTDIR="$T/dest" meson install -C "$BUILD" --no-rebuild
drop_mounts() { # the folders in which a host's own are mounted must be empty when they are removed
    cut -d' ' -f5 /proc/self/mountinfo | grep "^$T/" | sort -r | xargs -r umount -l 2>/dev/null
    cleanup
}
trap drop_mounts EXIT

# new_host NAME: /usr of this machine, our files in /usr/local, and an /etc and a /var where nothing was
new_host() {
    local root=$T/$1 folder
    mkdir -p "$root"/{usr,proc,dev,etc,run,tmp,var/lib,root,home}
    chmod 1777 "$root/tmp"
    for folder in bin sbin lib lib64; do
        ln -s "usr/$folder" "$root/$folder"
    done
    mount --rbind /usr "$root/usr"
    mkdir "$T/$1.local"
    cp -a "$T/dest/usr/local/." "$T/$1.local"
    mount --bind "$T/$1.local" "$root/usr/local"
    mount --rbind /proc "$root/proc"
    mount --rbind /dev "$root/dev"
    printf 'root:x:0:0:root:/root:/bin/bash\n' >"$root/etc/passwd"
    printf 'root:x:0:\n' >"$root/etc/group"
    printf 'passwd: files\ngroup: files\nhosts: files\n' >"$root/etc/nsswitch.conf"
    printf '127.0.0.1 head.example head node7.example node7 localhost\n' >"$root/etc/hosts"
    : >"$root/etc/shadow"
    tr -d - </proc/sys/kernel/random/uuid >"$root/etc/machine-id"
    # of what else is installed on this machine nothing concerns a fresh host
    mkdir "$T/$1.tmpfiles" "$T/$1.sysusers"
    cp /usr/lib/tmpfiles.d/{systemd.conf,var.conf,tmp.conf} "$T/$1.tmpfiles"
    cp /usr/lib/sysusers.d/systemd*.conf "$T/$1.sysusers"
    [ ! -f /usr/lib/sysusers.d/basic.conf ] || cp /usr/lib/sysusers.d/basic.conf "$T/$1.sysusers"
    mount --bind "$T/$1.tmpfiles" "$root/usr/lib/tmpfiles.d"
    mount --bind "$T/$1.sysusers" "$root/usr/lib/sysusers.d"
    # a service manager starts nothing here; `sudo` is what root says anyway
    mkdir "$root/shims"
    printf '#!/bin/sh\nexec "$@"\n' >"$root/shims/sudo"
    chmod 755 "$root/shims/sudo"
}

# on HOST USER command...: with that user's groups, as after a login; HOME and umask are his
on() { (as_process "$@"); }
# the same in the place of this shell, so that who stops it stops the program
as_process() {
    local host=$1 user=$2 home
    shift 2
    home=$(awk -F: -v user="$user" '$1 == user { print $6 }' "$T/$host/etc/passwd")
    exec env -i PATH="/shims:$prefix/bin:/usr/sbin:/usr/bin" HOME="$home" LC_ALL=C.UTF-8 ${ASAN_OPTIONS:+"ASAN_OPTIONS=$ASAN_OPTIONS"} \
        chroot "$T/$host" setpriv --reuid "$user" --regid "$(id_of "$host" "$user")" --init-groups \
        bash -c 'cd; umask 077; exec "$@"' - "$@"
}
fails() { ! "$@"; }
same_text() { [ "$1" = "$2" ]; }
id_of() { awk -F: -v user="$2" '$1 == user { print $4 }' "$T/$1/etc/passwd"; }

# of a unit: the last value of a key
unit_value() { sed -n "s/^$2=//p" "$T/head.local/lib/systemd/system/$1" | tail -n 1; }

# start_unit HOST UNIT: what systemd would do with it: user, groups, folders, command, umask
start_unit() {
    local host=$1 unit=$2 file=${2/@*/@.service} instance name mode key
    instance=${unit#*@}
    instance=${instance%.service}
    for key in RuntimeDirectory StateDirectory; do
        name=$(unit_value "$file" $key)
        mode=$(unit_value "$file" ${key}Mode)
        name=${name//%i/$instance}
        [ "$key" = RuntimeDirectory ] && name=/run/$name || name=/var/lib/$name
        install -d -m "$mode" -o "$(stat -c %u "$T/$host/var/lib/msched")" -g "$(stat -c %g "$T/$host/var/lib/msched")" "$T/$host$name"
    done
    # shellcheck disable=SC2046 # words
    start "$host-${unit%.service}" as_process "$host" "$(unit_value "$file" User)" $(unit_value "$file" ExecStart | sed "s/%i/$instance/g")
}

# run_line HOST USER "words for the test" LINE: a line of the document
run_line() {
    local host=$1 user=$2 what=$3 line=$4 unit
    line=${line%%  \#*}
    line=${line%"${line##*[! ]}"}
    line=${line//\/etc\/msched/$config}
    line=${line/3:500/3:${oldest:-}}
    case $line in
    "meson "*) return ;; # done above, into another folder
    "sudo systemctl enable --now "*)
        unit=${line##* }
        [[ $unit == *.* ]] || unit=$unit.service
        ok "$what: $line" on "$host" "$user" systemctl enable "$unit"
        start_unit "$host" "$unit"
        ;;
    "sudo systemctl try-reload-or-restart "*) # of a unit, what ExecReload= says: HUP
        ok "$what: $line" kill -HUP "$(sed -n 's/.*scheduler\.start .* pid=\([0-9]*\) .*/\1/p' "$T/head-msschedd.log")"
        ;;
    *) ok "$what: $line" on "$host" "$user" bash -c "$line" ;;
    esac
}

# block N M: the lines of the M-th code block of section N of operations.md
block() {
    awk -v section="## $1. " -v want="$2" '
        /^## / { here = index($0, section) == 1; n = 0 }
        /^```/ { inside = !inside; n += inside; next }
        here && inside && n == want && !/^#/ { print }' "$ROOT/docs/operations.md"
}
# run_block N M HOST USER [WHO]: lines with sudo are those of WHO, where somebody is named
run_block() {
    local line user n=0
    while read -r line; do
        n=$((n + 1))
        user=$4
        [[ $line != sudo\ * ]] || user=${5:-$4}
        run_line "$3" "$user" "section $1" "$line"
        case $line in *"enable --now msschedd"*) wait_for 60 served ;; esac
    done < <(block "$1" "$2")
    ok "section $1 has its block $2" [ $n -gt 0 ]
}

# README's way is the one that is walked here
commands_of() { # FILE [HEADING]: commands of the code blocks, one a line, without their comments
    awk -v section="${2:-}" '/^## / { here = section == "" || $0 == section }
        /^```/ { inside = !inside; next } here && inside && !/^#/ { sub(/ +#.*/, ""); print }' "$ROOT/$1"
}
while read -r line; do
    ok "README's line is in operations.md: $line" bash -c 'grep -qxF -- "$1" <<<"$2"' - "$line" "$(commands_of docs/operations.md)"
done < <(commands_of README.md "## A standing cluster")

new_host head
new_host node7
served() { grep -qs 'scheduler.listen address=unix' "$T/head-msschedd.log"; }
run_line node7 root "section 2" "$(block 2 1 | grep systemd-sysusers)" # "after the first two lines of section 2"

# ---- 2. a head node
run_block 2 1 head root
ok "the scheduler is there" served
ok "without a certificate there would be none, and no second try" status 78 on node7 msched \
    msschedd --listen '[::]:8119' --database /tmp/none.db
ok "with TLS" logged head-msschedd "tls=on"
ok "the socket is of the persons' group" [ "$(on head root stat -c '%a %U %G' /run/msched/msschedd.sock)" = "660 msched msched-users" ]
ok "ca.crt is readable, whatever the umask" [ "$(stat -c %a "$T/head$config/tls/ca.crt")" = 644 ]
ok "the key is of the daemons' group" [ "$(on head root stat -c '%a %U %G' "$config/tls/node.p12")" = "640 root msched" ]

# ---- 3. a node: the certificate is made on the head node, and travels
run_block 3 1 head root
cp -p "$T/head/root/node7.p12" "$T/node7/root/"
run_block 3 2 node7 root
ok "the node comes in" wait_for 60 says "idle" on head root msctl nodes

# ---- a check by root is one of what the service would meet: its user's rights
check_as() { on node7 "$1" msworker --check-config; }
ok "root's check of a node is content" status 0 check_as root
ok "and says as whom it judged" says "judged as the user msched" check_as root
on node7 root chown root:root "$config/tls/node.p12"
ok "a key that the service may not read fails root's check" status 78 check_as root
ok "as the service's own" status 78 check_as msched
ok "and is named" says "node.p12: Permission denied" check_as root
on node7 root chown root:msched "$config/tls/node.p12"
ok "with the group it is right again" status 0 check_as root
ok "root's check of the scheduler is one of its user's" says "judged as the user msched" on head root msschedd --check-config
ok "and is content" status 0 on head root msschedd --check-config

# ---- 4. a user
for host in head node7; do
    for name in alice bob; do
        on $host root useradd -m -s /bin/bash $name
    done
done
# a person's check cannot read the service's files; what he hears gives none of them to him
gives_away() { { check_as alice; on head alice msschedd --check-config; } 2>&1 | grep -E 'chgrp|chown|chmod'; }
ok "a person's check of a worker fails" status 78 check_as alice
ok "and says that sudo is missing" says "is the service's, not for uid" check_as alice
ok "in the command" says "sudo msworker --check-config judges as the service does" check_as alice
ok "as does that of the scheduler" says "sudo msschedd --check-config judges" on head alice msschedd --check-config
ok "and nothing that would take a key from the service" status 1 gives_away
printf 'tls = off\n' >"$T/head/home/alice/plain.conf"
ok "the same of the database" says "/var/lib/msched is the service's (msched's, of mode 0700), and this runs as alice: give the command with sudo" \
    on head alice msschedd --config plain.conf --database /var/lib/msched/state.db --check-config
cat >"$T/job.yaml" <<'YAML'
name: first
network: linear
dataset: {kind: nonlinear, shuffle: false}
batch_size: 16
epochs: 1
loss: mse
optimizer: {kind: sgd, learning_rate: 0.01}
checkpoint: {every_steps: 5}
YAML
for host in head node7; do
    install -m 644 "$T/job.yaml" "$T/$host/home/alice/job.yaml"
done
ok "nobody who is not in the group may use the socket" status 4 on head bob msctl status
ok "and he hears what to do" says "usermod -aG msched-users" on head bob msctl status
run_block 4 1 head root
run_block 4 2 head alice
run_block 4 3 head root
install -m 600 -o "$(awk -F: '$1 == "alice" { print $3 }' "$T/node7/etc/passwd")" "$T/head/root/alice.p12" "$T/node7/home/alice/"
run_block 4 4 node7 alice
ok "who submits with a certificate is the same somebody" says '"owner":"user:alice"' on head alice msctl --json show 2
ok "both jobs end well" on node7 alice msctl wait --timeout 900 1 2
run_block 4 5 node7 alice
ok "she has her weights" [ -s "$T/node7/home/alice/results/weights.safetensors" ]
ok "and the newest checkpoint" bash -c 'ls "$1"/*/*.json || ls "$1"/*.json' - "$T/node7/home/alice/results"
ok "nobody else does" fails on head bob msctl fetch 1 -o theirs
# a job that was cancelled, and one that goes on from it
jobs=$T/node7/var/lib/msched/jobs
all_saved() { find "$jobs/3/checkpoints" -name '*.json' 2>/dev/null | sed 's/.*-\([0-9]*\).json/\1/' | sort -n; }
saved() { all_saved | tail -n 1; }
has_saved() { [ -n "$(saved)" ]; }
sed -e 's/^epochs: .*/epochs: 1000000/' -e 's/^checkpoint: .*/checkpoint: {every_steps: 100, keep_max: 1000}/' \
    "$T/job.yaml" >"$T/node7/home/alice/job.yaml"
ok "she submits one that saves" same_text "$(on node7 alice msctl submit job.yaml)" 3
ok "which it does" wait_for 120 has_saved
ok "she cancels it" on node7 alice msctl cancel 3
ok "and it is over" status 5 on node7 alice msctl wait --timeout 900 3
echo "steps: $(($(saved) + 20))" >>"$T/node7/home/alice/job.yaml"
ok "its own folder is closed to others" says "has not lent it" on node7 alice bash -c \
    'msctl wait --timeout 900 "$(msctl submit --set resume=/var/lib/msched/jobs/3/checkpoints job.yaml)"'
oldest=$(all_saved | head -n 1) # for the guide's 500
run_block 4 6 node7 alice
starts_behind() { grep -q "\"step\": *$(($2 + 1))," <(grep -m 1 '"step"' "$jobs/$1/metrics.jsonl"); } # JOB STEP
ok "one goes on from where it was" wait_for 120 starts_behind 5 "$(saved)"
ok "and has no end" on node7 alice msctl cancel 5
ok "one from another step" status 0 on node7 alice msctl wait --timeout 900 6
ok "is from that one" starts_behind 6 "$oldest"
run_block 4 7 node7 alice root
ok "the next one ends well" status 0 on node7 alice msctl wait --timeout 900 7
ok "from where the other one was" starts_behind 7 "$(saved)"
ok "her file of settings is hers alone" [ "$(stat -c %a "$T/node7/home/alice/.config/msched/client.p12")" = 600 ]

# ---- who can read what
keys() { find "$T/$1$config" "$T/$1/var/lib/msched" "$T/$1/run/msched" -type f \( -name '*.p12' -o -name 'ca.key' -o -name 'state.db*' -o -name 'index.txt' \); }
ok "there are keys to protect" [ "$(keys head | wc -l)" -ge 4 ]
while read -r file; do
    file=${file#"$T/head"}
    ok "alice, of msched-users, cannot read $file" fails on head alice cat "$file"
    ok "nor write it" fails on head alice bash -c "exec 3>>'$file'"
done < <(keys head)
ok "nor can bob" fails on head bob cat "$config/tls/node.p12"
ok "the daemon's user can read the key" on head msched cat "$config/tls/node.p12"
ok "and not that of the CA" fails on head msched cat "$config/ca/ca.key"
ok "no person is in the group of the keys" bash -c 'grep -q "^msched:[^:]*:[^:]*:$" "$1/etc/group"' - "$T/head"
ok "alice may use the socket" on head alice msctl status
ok "and is no admin there" fails on head alice cat /var/lib/msched/state.db

# ---- what a reboot would start
wants() { find "$T/$1/etc/systemd/system/$2.wants" -name "$3" -type l 2>/dev/null | grep -q .; }
ok "the scheduler comes back after a reboot" wants head multi-user.target msschedd.service
ok "so does the worker" wants node7 multi-user.target msworker@0.service
ok "and the target of all workers has it" wants node7 mscluster.target msworker@0.service
ok "a second slot is enabled" on node7 root systemctl enable msworker@1.service
ok "and disabled" on node7 root systemctl disable msworker@1.service
ok "the first comes back all the same" wants node7 multi-user.target msworker@0.service

# ---- 9. certificates: by name
on head root msctl certs issue worker head.example --out w.p12 >/dev/null
ok "the head trains, too: its worker has a folder of its own" on head root msctl certs install w.p12 --to "$config/tls-worker"
run_line head root "section 3" "echo 'tls_dir = $T/nowhere' >>/etc/msched/msworker.conf"
start alice-before as_process head alice msctl events -f
ok "alice looks on" wait_for 60 logged alice-before job.succeeded
run_block 9 1 head root
for folder in tls tls-worker; do
    ok "the list of revoked ones is in $folder" on head root cmp "$config/ca/crl.pem" "$config/$folder/crl.pem"
    ok "readable for everybody who may enter" [ "$(stat -c %a "$T/head$config/$folder/crl.pem")" = 644 ]
done
ok "the list is taken over" wait_for 60 logged head-msschedd "scheduler.reload"
ok "who was revoked stays out" wait_for 60 fails on node7 alice msctl status
ok "a new login on the head node is out, too" status 4 on head alice msctl status
# groups are a process's own: what section 9 says about those that she has
ok "something happens" on head root msctl submit /home/alice/job.yaml
ok "what she runs since before still sees it" wait_for 60 bash -c '[ "$(grep -c job.submitted "$1")" = 8 ]' - "$T/alice-before.log"
ok "the text says so, and how to end it" grep -qx 'sudo loginctl terminate-user alice; sudo pkill -KILL -u alice .*' "$ROOT/docs/operations.md"
stop alice-before KILL
stop head-msschedd
stop node7-msworker@0
finish
