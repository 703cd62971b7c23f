#!/bin/bash
# top-level.sh - at the top lies what docs/design.md says, and no binary but what tests read: a file that
# a tool left there was part of a release once
set -u
cd "$(dirname "$0")/../.." || exit 1
known="^(\.ci|\.clang-format|\.gitignore|\.shellcheckrc|CHANGELOG\.md|LICENSE|README\.md|bench|cli|daemon|docs|examples|libworker|meson\.build|meson_options\.txt|proto|scripts|systemd|tests)$"
if ! git rev-parse --git-dir > /dev/null 2>&1; then
    echo "SKIP: not a clone"
    exit 77
fi
bad=0
while read -r name; do
    [[ "$name" =~ $known ]] && continue
    echo "$name: is no part of the top level: remove it, or name it in tests/lint/top-level.sh and docs/design.md"
    bad=1
done < <(git ls-files | cut -d/ -f1 | sort -u)
while read -r name; do
    echo "$name: a package, an object or an archive: build or fetch it where it is needed"
    bad=1
done < <(git ls-files | grep -E '\.(whl|o|a|so|pyc|deb|tar|tgz|zip)$' | grep -v '^tests/golden/')
exit $bad
