#!/usr/bin/env bash
# symbols.sh - no function or variable of ours has the name of one that a library exports: the linker
# says nothing, and takes ours where the library's was meant (`event_add` of ours once armed no timer)
set -u
cd "${MSCHED_BUILD_ROOT:?}" || exit 2
export LC_ALL=C

programs=(daemon/msschedd libworker/msworker cli/msctl)
# libraries that must be among those seen, or this looks at the wrong place
expected=(libevent libsqlite3 libssl libcrypto libprotobuf-c libdnnl libhwloc libxxhash libyaml libjansson libjpeg libpng16)

T=$(mktemp -d) || exit 2
trap 'rm -rf "$T"' EXIT

# ours: what objects of programs and of their libraries define for others to see, "name file"
mapfile -t objects < <(find proto daemon cli libworker -name '*.o' -path '*.p/*')
nm -A --defined-only -g "${objects[@]}" 2>/dev/null |
    awk '{ split($1, at, ":"); print $NF, at[1] }' | sort -u >"$T/ours"

# theirs: what the libraries export that the programs are linked with
ldd "${programs[@]}" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
    grep -v -e "^$PWD/" -e 'lib[alu]b\?san' -e libtsan >"$T/libraries"
while read -r library; do
    nm -D --defined-only "$library" 2>/dev/null |
        awk -v library="${library##*/}" '$2 ~ /^[A-Zi]$/ { sub(/@.*/, "", $3); print $3, library }'
done <"$T/libraries" | sort -u >"$T/theirs"

bad=0
for name in "${expected[@]}"; do
    grep -q "/${name}[-.]" "$T/libraries" && continue
    echo "no $name among the libraries of ${programs[*]}: the test looks at the wrong place"
    bad=$((bad + 1))
done
if [ "$(wc -l <"$T/ours")" -lt 500 ] || ! grep -q '^event_add ' "$T/theirs" || ! grep -q '^sched_apply ' "$T/ours"; then
    echo "$(wc -l <"$T/ours") symbols of ours, $(wc -l <"$T/theirs") of libraries: the test looks at the wrong place"
    bad=$((bad + 1))
fi
while read -r name file library; do
    echo "$name of $file is also a symbol of $library: give ours another name"
    bad=$((bad + 1))
done < <(join "$T/ours" "$T/theirs" | grep -v '^main ')
echo "$(wc -l <"$T/ours") symbols against those of $(wc -l <"$T/libraries") libraries, $bad wrong"
[ "$bad" -eq 0 ]
