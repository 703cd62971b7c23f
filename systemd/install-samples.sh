#!/bin/sh
# install-samples.sh FOLDER FILE... - the sample configurations, where no configuration is yet
#
# What an operator has written is never overwritten by an upgrade. Their built-in paths are those of this installation.
set -eu
config=$1
folder=${DESTDIR:-}$config
shift
mkdir -p "$folder"
for sample in "$@"; do
    target=$folder/$(basename "$sample")
    if [ -e "$target" ]; then
        echo "Keeping $target"
    else
        echo "Installing $sample to $folder"
        sed "s#/etc/msched#$config#g" "$sample" >"$target"
        chmod 644 "$target"
    fi
done
