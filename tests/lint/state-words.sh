#!/usr/bin/env bash
# state-words.sh - a state or phase of a message is compared with the word of proto/state_words.h, which is the one that
# is sent, and never with one that is written out: it would be another one some day, and only people would notice.
set -u
cd "${MSCHED_SOURCE_ROOT:?}" || exit 2

bad=0
seen=0
while IFS=: read -r file line text; do
    seen=$((seen + 1))
    grep -qE '(state|phase)\b[^,"]*, *"' <<<"$text" || continue
    echo "$file:$line: the word is in proto/state_words.h:$text"
    bad=$((bad + 1))
done < <(grep -rnE 'str(n|case|ncase)?cmp\(' --include='*.c' --include='*.h' proto daemon cli libworker)

if [ "$seen" -lt 100 ]; then
    echo "only $seen lines seen: the test looks at the wrong place"
    bad=$((bad + 1))
fi
echo "$seen comparisons checked, $bad wrong"
[ "$bad" -eq 0 ]
