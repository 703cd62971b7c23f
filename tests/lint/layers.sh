#!/usr/bin/env bash
# layers.sh - who may include whom (docs/design.md, "The house"): every #include of the tree is held
# against one table. Fails with file and line of each arrow that points the wrong way.
set -u
cd "${MSCHED_SOURCE_ROOT:?}" || exit 2

# room            may include headers of these rooms (its own always; proto/... by file where listed)
base="proto/dtype.h proto/err.h proto/grow.h proto/limits.h proto/macros.h proto/rng.h proto/exact.h"
declare -A may=(
    [proto]="proto"
    [daemon]="proto daemon"
    [daemon/sched]="daemon/sched proto"
    [daemon/store]="daemon/store daemon/sched proto"
    [cli]="proto cli libworker/job/job.h libworker/job/first_weights.h libworker/data/data.h libworker/plan/spec.h libworker/train/checkpoint_folder.h libworker/train/saved_list.h libworker/train/best_files.h libworker/onnx/write.h libworker/network/network.h libworker/graph/cost.h libworker/graph/roofline.h libworker/kernel/clones.h"
    [libworker/kernel]="libworker/kernel $base"
    [libworker/graph]="libworker/graph $base"
    [libworker/network]="libworker/network libworker/graph libworker/schema libworker/data/json_text.h proto"
    [libworker/data]="libworker/data proto/clock.h proto/discard.h proto/file_write.h proto/message.h proto/nearest.h proto/text.h proto/thread.h $base"
    [libworker/comm]="libworker/comm libworker/kernel proto"
    [libworker/plan]="libworker/plan libworker/graph libworker/kernel libworker/comm libworker/host/team_room.h proto"
    [libworker/agent]="libworker/agent proto"
    [libworker/host]="libworker/host proto/thread.h $base"
    [libworker/onnx]="libworker/onnx libworker/graph libworker/data/path.h libworker/data/source.h proto"
    [libworker/schema]="libworker/schema proto"
    [libworker/job]="libworker/job libworker/network/network.h libworker/onnx/onnx.h libworker/schema libworker/data proto"
    [libworker/train]="libworker/train libworker/job libworker/host libworker/network libworker/onnx/onnx.h libworker/graph libworker/plan libworker/kernel libworker/comm libworker/data proto"
    [libworker/infer]="libworker/infer libworker/train libworker/job libworker/host libworker/graph libworker/plan libworker/kernel libworker/data proto"
    [libworker/node]="libworker/node libworker/train libworker/job libworker/host libworker/plan libworker/comm libworker/agent proto"
    [libworker/program]="libworker/program libworker/node libworker/infer libworker/host libworker/job libworker/plan libworker/comm libworker/data proto"
    [bench]="bench proto libworker/agent libworker/comm libworker/data/data.h libworker/graph libworker/host libworker/job libworker/kernel libworker/network libworker/node/node.h libworker/plan/plan.h libworker/plan/spec.h libworker/plan/view.h libworker/train/train.h"
)
# library header (a pattern)   the only places that may see it
only=(
    'oneapi/dnnl|^(libworker/plan/|bench/peer\.c)'
    'sqlite3\.h|^daemon/store/'
    'openssl/|^(proto|libworker/comm)/|^bench/handshake\.c'
    'event2/|^(proto|daemon|cli|libworker/agent|bench)/'
    'yaml\.h|^libworker/schema/'
    'hwloc\.h|^libworker/host/'
    'omp\.h|^libworker/(host|plan)/'
    'zlib\.h|^libworker/data/'
    'jpeglib\.h|^libworker/data/picture_jpeg'
    'png\.h|^libworker/data/picture_png'
    'xxhash\.h|^libworker/(data|train)/'
)
bad=0
arrows=0

allowed() { # header, list
    local item
    for item in $2; do
        [[ "$1" == "$item" || "$1" == "$item"/* ]] && return 0
    done
    return 1
}

for room in "${!may[@]}"; do
    [ -d "$room" ] || continue
    while IFS=: read -r file line text; do
        header=$(sed -E 's/.*"([^"]+)".*/\1/' <<<"$text")
        arrows=$((arrows + 1))
        [ "$header" = config.h ] && continue
        if ! allowed "$header" "${may[$room]}" && [[ "$header" != libworker/msworker.h ]]; then
            echo "$file:$line: $room may not include $header"
            bad=$((bad + 1))
        fi
    done < <(grep -rnE '^#include "' --include='*.c' --include='*.h' "$room")
done

for row in "${only[@]}"; do
    header=${row%%|*}
    places=${row#*|}
    while IFS=: read -r file line _; do
        arrows=$((arrows + 1))
        if ! grep -qE "$places" <<<"$file"; then
            echo "$file:$line: only $places may include $header"
            bad=$((bad + 1))
        fi
    done < <(grep -rnE "^#include <$header" --include='*.c' --include='*.h' proto daemon cli libworker bench)
done

# a library never prints and never exits; the program may, and a child of its own has to
while IFS=: read -r file line text; do
    echo "$file:$line: a library neither prints nor exits: $text"
    bad=$((bad + 1))
done < <(grep -rnE '^[^*/]*\b(printf|puts|exit|_exit|abort)\(' --include='*.c' proto libworker |
    grep -vE '^libworker/(program/(answer|msworker|setup)|data/program_child)\.c:')

# banned functions
while IFS=: read -r file line text; do
    echo "$file:$line: banned function: $text"
    bad=$((bad + 1))
done < <(grep -rnE '^[^*/"]*\b(strcpy|sprintf|strcat|gets|atoi|rand|strtok|system)\(' \
    --include='*.c' --include='*.h' proto daemon cli libworker)

# roles are bits: who is admin and worker at once is neither of them to `==`; daemon/sched/may.c judges
while IFS=: read -r file line text; do
    echo "$file:$line: a role compared for equality: $text"
    bad=$((bad + 1))
done < <(grep -rnE '[=!]= *\(?MS_ROLE_|MS_ROLE_[A-Z]+ *[=!]=' --include='*.c' --include='*.h' daemon proto libworker cli)

# an err that somebody else gave may be NULL: only proto/err.c looks into one (ms_err_text, ms_err_code)
while IFS= read -r line; do
    echo "$line"
    bad=$((bad + 1))
done < <(find proto libworker -name '*.c' ! -path proto/err.c -exec awk '
    FNR == 1 { delete given }
    {
        for (rest = $0; match(rest, /struct ms_err \*[a-z_]+/); rest = substr(rest, RSTART + RLENGTH)) {
            given[substr(rest, RSTART + 15, RLENGTH - 15)] = 1
        }
        for (rest = $0; match(rest, /[a-z_]+->(text|code)/); rest = substr(rest, RSTART + RLENGTH)) {
            name = substr(rest, RSTART, RLENGTH)
            sub(/->.*/, "", name)
            if (name in given) {
                print FILENAME ":" FNR ": an err that may be NULL is looked into: " $0
            }
        }
    }' {} +)

if [ "$arrows" -lt 100 ]; then
    echo "only $arrows includes seen: the test looks at the wrong place"
    bad=$((bad + 1))
fi
echo "$arrows includes checked, $bad wrong"
[ "$bad" -eq 0 ]
