# packages.sh - the packages of Debian 12 that msched needs, and how a script gets the missing ones
#
# Sourced by quickstart and test: the one place where packages are named.
# shellcheck shell=bash disable=SC2034 # the lists are for those who source this

# to build anything: compiler, generators, and the libraries that all programs link; dpkg-dev tells meson the folder in which
# the loader looks for libraries (/usr/lib/x86_64-linux-gnu), without it that is lib64
packages_build=(
    gcc libc6-dev dpkg-dev meson ninja-build pkg-config protobuf-c-compiler
    libevent-dev libprotobuf-c-dev libssl-dev libyaml-dev libjansson-dev zlib1g-dev
    libxxhash-dev libjpeg62-turbo-dev libpng-dev
)

# for msschedd, on top; left out with -Dscheduler=false
packages_scheduler=(libsqlite3-dev)

# for msworker, on top; left out with -Dworker=false
packages_worker=(libdnnl-dev libhwloc-dev)

# to test, on top of all: check, formatters, checkers, the peers that figures are compared with; left out with
# -Dtests=false
packages_test=(
    check clang clang-format shellcheck cppcheck man-db openmpi-bin libopenmpi-dev
    openssl sqlite3 python3 python3-numpy jq procps iproute2 util-linux systemd passwd
)

# for scripts/test --all, on top: machines that a real systemd boots
packages_boot=(debootstrap systemd-container)

# Prints those of the given packages that are not installed.
packages_missing() {
    local name status
    for name in "$@"; do
        status=$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null) || status=
        [ "$status" = installed ] || echo "$name"
    done
}

# Runs a command as root.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        echo "this needs root and there is no sudo; as root: $*" >&2
        return 1
    fi
}

apt_install() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
}

# True where the package lists know all of the packages.
lists_know() {
    local name
    for name in "$@"; do
        apt-cache show --no-all-versions "$name" >/dev/null 2>&1 || return 1
    done
}

# Installs what is missing of the given packages, and says what.
packages_install() {
    local missing
    if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
        echo "this is no Debian: install the counterparts of these packages yourself: $*"
        return 0
    fi
    mapfile -t missing < <(packages_missing "$@")
    if [ ${#missing[@]} -eq 0 ]; then
        return 0
    fi
    echo "installing ${#missing[@]} packages: ${missing[*]}"
    if ! lists_know "${missing[@]}"; then
        as_root apt-get update || return 1
    elif apt_install "${missing[@]}"; then
        return 0
    else # the lists may be older than the mirror
        as_root apt-get update || return 1
    fi
    apt_install "${missing[@]}"
}
