#!/usr/bin/env bash
# dtypes.sh - in plan/ and train/ bytes follow from (dtype, count): proto/dtype.h says how many an
# element has, and no other line says that a buffer is of floats. Rows of tables, which name a dtype
# beside, are free.
set -u
cd "${MSCHED_SOURCE_ROOT:?}" || exit 2

bad=0
seen=0
while IFS=: read -r file line text; do
    seen=$((seen + 1))
    grep -qE 'sizeof\(float\)|dnnl_(f32|bf16|s32|u8)\b' <<<"$text" || continue
    grep -qE '\[?MS_(F32|BF16|I32|U8)\b' <<<"$text" && continue
    echo "$file:$line: bytes of a buffer come from ms_dtype_size(dtype, count):$text"
    bad=$((bad + 1))
done < <(grep -rnE 'sizeof\(|dnnl_[a-z0-9]+|ms_dtype_' --include='*.c' --include='*.h' \
    libworker/plan libworker/train)

if [ "$seen" -lt 100 ]; then
    echo "only $seen lines seen: the test looks at the wrong place"
    bad=$((bad + 1))
fi
echo "$seen lines checked, $bad wrong"
[ "$bad" -eq 0 ]
