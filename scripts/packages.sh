# packages.sh - the packages of Debian 12 that msched needs, and how a script gets the missing ones
#
# Sourced by quickstart and test: the one place where packages are named.
# shellcheck shell=bash disable=SC2034 # the lists are for those who source this

# to build: compiler, generators, and the libraries that the programs link
packages_build=(
    gcc libc6-dev meson ninja-build pkg-config protobuf-c-compiler
    libevent-dev libprotobuf-c-dev libssl-dev libsqlite3-dev libdnnl-dev libyaml-dev libjansson-dev
    zlib1g-dev check
)

# to test, on top: formatters, checkers, the peers that figures are compared with
packages_test=(
    clang clang-format shellcheck cppcheck man-db openmpi-bin libopenmpi-dev
    openssl sqlite3 python3 python3-numpy jq procps iproute2 util-linux systemd
)

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
