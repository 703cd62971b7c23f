#!/bin/sh
# install-samples.sh FOLDER FILE... - the sample configurations, where no configuration is yet
#
# What an operator has written is never overwritten by an upgrade.
set -eu
folder=${DESTDIR:-}$1
shift
mkdir -p "$folder"
for sample in "$@"; do
    target=$folder/$(basename "$sample")
    if [ -e "$target" ]; then
        echo "Keeping $target"
    else
        echo "Installing $sample to $folder"
        cp "$sample" "$target"
        chmod 644 "$target"
    fi
done
