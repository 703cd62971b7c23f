#!/usr/bin/env bash
# diagnoses.sh - what docs/operations.md quotes under "you see" is what a program prints: who looks a
# line of his log up in the table must find it. `...` stands there for what differs each time.
set -u
cd "${MSCHED_SOURCE_ROOT:?set MSCHED_SOURCE_ROOT}" || exit 99
# literals that the compiler joins are joined here, too
printed=$(cat cli/*.c daemon/*.c daemon/*/*.c libworker/*/*.c proto/*.c | tr '\n' ' ' | sed 's/" *"//g')
# the C library prints these
printed+=$'\nRead-only file system\nToo many open files\n'
seen=$(sed -n '/^## 11\./,/^## 12\./s/^| \([^|]*\) |.*/\1/p' docs/operations.md | grep -o '`[^`]*`' | tr -d '`' |
    sed 's/ *\.\.\. */\n/g' | sed 's/^[:) ]*//; s/[( ]*$//' | grep -v '^$')
[ "$(wc -l <<<"$seen")" -ge 20 ] || { echo "the table of section 11 was not found" >&2; exit 99; }
status=0
while IFS= read -r text; do
    grep -qF -- "$text" <<<"$printed" && continue
    echo "docs/operations.md, section 11: no program prints '$text'" >&2
    status=1
done <<<"$seen"
[ $status -ne 0 ] || echo "every quoted word of section 11 is printed by a program"
exit $status
