#!/bin/sh
# allreduce.sh - same-host all-reduce of two ranks, ours beside Open MPI's, in one go and in turn
#
# allreduce.sh [BUILD_DIR [ROUNDS]]
#
# Both are run in turn ROUNDS times, so that what the machine does meanwhile hits both alike; mpirun
# binds two ranks to two cores, so ours are bound, too. The table has the median over rounds of
# minimum and median, and the ratio (above 1: ours is faster).
set -eu
build=${1:-build}
rounds=${2:-5}
ours=$build/bench/allreduce
theirs=$build/bench/allreduce_mpi
for program in "$ours" "$theirs"; do
    if [ ! -x "$program" ]; then
        echo "allreduce.sh: $program is missing: meson setup $build -Dmpi=enabled && ninja -C $build" >&2
        exit 2
    fi
done
if ! command -v mpirun >/dev/null; then
    echo "allreduce.sh: no mpirun: apt-get install openmpi-bin libopenmpi-dev" >&2
    exit 2
fi
root=
if [ "$(id -u)" = 0 ]; then
    root=--allow-run-as-root
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT INT TERM

# median of field $2 of the lines of file $1
median() {
    awk -v f="$2" '{print $f}' "$1" | sort -g | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'
}

echo "bytes      ours min/median us     Open MPI min/median us   ratio min  ratio median"
for size in 1048576 98566144; do
    iterations=400
    if [ "$size" -gt 10000000 ]; then
        iterations=15
    fi
    round=0
    while [ "$round" -lt "$rounds" ]; do
        "$ours" --bind -n 2 -t shm -s "$size" -i "$iterations" | grep '^shm' >>"$dir/ours.$size"
        # shellcheck disable=SC2086
        mpirun $root --oversubscribe -n 2 "$theirs" "$size" "$iterations" | grep '^mpi' >>"$dir/mpi.$size"
        round=$((round + 1))
    done
    # fields: name ranks N bytes B iterations I min_us X median_us Y ...
    a=$(median "$dir/ours.$size" 9) b=$(median "$dir/ours.$size" 11)
    c=$(median "$dir/mpi.$size" 9) d=$(median "$dir/mpi.$size" 11)
    awk -v s="$size" -v a="$a" -v b="$b" -v c="$c" -v d="$d" \
        'BEGIN {printf "%-10s %10.1f %10.1f  %10.1f %10.1f %14.2f %13.2f\n", s, a, b, c, d, c / a, d / b}'
done
