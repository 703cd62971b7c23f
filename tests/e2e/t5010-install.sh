#!/usr/bin/env bash
# t5010-install.sh - meson install puts everything where a distribution would, and it works from there
. "$(dirname "$0")/lib.sh"
need python3 meson ninja pkg-config "${CC:=cc}" readelf nm

D=$T/dest
install() { DESTDIR=$D meson install -C "$BUILD" --no-rebuild; }
ok "everything is installed" install
pc=$(find "$D" -name msworker.pc)
prefix=$(sed -n 's/^prefix=//p' "$pc")
config=/etc/msched
[ "$prefix" = /usr ] || config=$prefix/etc/msched
lib=$(dirname "$(find "$D" -name 'libmsworker.so')")

for path in bin/msctl bin/msschedd bin/msworker include/msworker.h share/man/man1/msctl.1 \
    share/man/man8/msschedd.8 share/man/man8/msworker.8 share/man/man5/msched-job.5 \
    share/bash-completion/completions/msctl lib/systemd/system/msschedd.service \
    lib/systemd/system/msworker@.service lib/systemd/system/mscluster.target lib/sysusers.d/msched.conf \
    lib/tmpfiles.d/msched.conf share/doc/msched/samples/msworker.conf share/doc/msched/README.md \
    share/doc/msched/operations.md share/doc/msched/examples/mnist.yaml share/doc/msched/examples/train.c \
    share/doc/msched/examples/points.c; do
    ok "$path" [ -s "$D$prefix/$path" ]
done
for document in "$ROOT"/docs/*.md; do
    ok "${document##*/}" [ -s "$D$prefix/share/doc/msched/${document##*/}" ]
done
ok "the folder that README builds in is not that of the scripts, whose prefix would stay" bash -c '
    line=$(grep -h "^meson setup .*--prefix=/usr " "$1/README.md") && [[ $line != "meson setup build "* ]] &&
    grep -qF -- "$line" "$1/docs/operations.md"' - "$ROOT"
if command -v dpkg-query >/dev/null; then # without it meson takes lib64, where no loader looks
    ok "what tells meson the loader's folder is among the packages" bash -c '. "$1/scripts/packages.sh"; [[ " ${packages_build[*]} " == *" dpkg-dev "* ]]' - "$ROOT"
fi
for name in msctl msschedd msworker; do
    ok "$config/$name.conf" [ -s "$D$config/$name.conf" ]
done
ok "what they call built in is of this installation" bash -c '! grep -F /etc/msched "$1"/*.conf | grep -vF " = $2/"' - "$D$config" "$config"

# ---- what the units name is there
units=$D$prefix/lib/systemd/system
while read -r program; do
    ok "$program, which a unit starts" [ -x "$D$program" ]
done < <(sed -n 's/^Exec[A-Za-z]*=\(\/[^ ]*bin\/ms[^ ]*\).*/\1/p' "$units"/*.service | sort -u)
while read -r page section; do
    ok "$page($section), which a unit names" [ -s "$D$prefix/share/man/man$section/$page.$section" ]
done < <(sed -n 's/^Documentation=//p' "$units"/* | tr ' ' '\n' | sed -n 's/^man:\(ms.*\)(\(.\))$/\1 \2/p' | sort -u)
ok "the folders of the certificates are those of the programs" \
    grep -q " $config/tls " "$D$prefix/lib/tmpfiles.d/msched.conf"
ok "msworker looks there" says "$config/tls" "$D$prefix/bin/msworker" --check-config
ok "msschedd, too" says "$config/tls/node.p12" "$D$prefix/bin/msschedd" --help
ok "no unit has a placeholder left" bash -c '! grep -n "@[a-z]*@" "$1"/*.service' - "$units"
ok "no file tells where it was built" bash -c '! grep -rlF "$1" "$2" --include="*.pc" --include="*.service" \
    --include="*.conf" --include="*.h"' - "$BUILD" "$D"
for file in "$D$prefix"/bin/* "$lib"/libmsworker.so; do
    ok "$(basename "$file") looks for libraries only where the system does" bash -c '
        ! readelf -d "$1" | grep -E "RUNPATH|RPATH"' - "$file"
done

# ---- the library
ok "only msw_ is visible" bash -c '! nm -D --defined-only "$1" | awk "{ print \$3 }" | grep -v "^msw_"' - "$lib/libmsworker.so"
ok "every function of the header is" bash -c '
    grep -oE "\bmsw_[a-z0-9_]+\(" "$1" | tr -d "(" | sort -u >"$3/wanted"
    nm -D --defined-only "$2" | awk "{ print \$3 }" | sort -u >"$3/there"
    [ -s "$3/wanted" ] && [ -z "$(comm -23 "$3/wanted" "$3/there")" ]' - \
    "$D$prefix/include/msworker.h" "$lib/libmsworker.so" "$T"
if ! grep -q __asan_init "$lib/libmsworker.so" && ! grep -q __tsan_init "$lib/libmsworker.so"; then
    export PKG_CONFIG_SYSROOT_DIR=$D PKG_CONFIG_PATH=${pc%/*}
    compile() {
        # shellcheck disable=SC2046 # flags are words
        "${@:2}" $(pkg-config --cflags msworker) "$ROOT/examples/$1.c" -o "$T/$1" $(pkg-config --libs msworker) -lm
    }
    ok "a C program compiles against it" compile train "$CC" -std=c11 -Wall -Wextra -Werror
    ok "and trains" says "step 200 of 200: loss" env LD_LIBRARY_PATH="$lib" "$T/train"
    ok "and prints the digest" says "weights_sha256" env LD_LIBRARY_PATH="$lib" "$T/train"
    ok "one with a network and data of its own, too" compile points "$CC" -std=c11 -Wall -Wextra -Werror
    ok "and trains" says "weights_sha256" env -C "$T" LD_LIBRARY_PATH="$lib" "$T/points"
    ok "the version is the project's" says "$("$MSCTL" --version | sed 's/msctl //')" pkg-config --modversion msworker
    if command -v c++ >/dev/null; then
        printf '#include <msworker.h>\nint main() { return msw_version() == nullptr; }\n' >"$T/version.cc"
        # shellcheck disable=SC2046
        ok "so does a C++ program" c++ $(pkg-config --cflags msworker) "$T/version.cc" -o "$T/version" \
            $(pkg-config --libs msworker)
        ok "and runs" env LD_LIBRARY_PATH="$lib" "$T/version"
    fi
    unset PKG_CONFIG_SYSROOT_DIR PKG_CONFIG_PATH
fi

# ---- the programs, from there
cat >"$T/job.yaml" <<'YAML'
network: linear
dataset: {kind: nonlinear, shuffle: false}
batch_size: 16
epochs: 1
loss: mse
optimizer: {kind: sgd, learning_rate: 0.01}
YAML
ok "msctl run finds its scheduler and workers beside itself" "$D$prefix/bin/msctl" run -n 2 --run-dir "$T/run" "$T/job.yaml"
ok "which train" [ -s "$T/run/weights.safetensors" ]

scripts=$D$prefix/share/doc/msched/examples
mkdir "$T/started"
ok "the start script runs the installed programs" env -C "$T/started" PATH="$D$prefix/bin:$PATH" MS_SCHED_PORT="$(free_port)" \
    bash "$scripts/run_dynamic_cluster.sh" "$T/job.yaml" 2
ok "which train" grep -q "loss is" "$T/started/device/worker_0.log"
ok "so does the one of two machines" env -C "$T/started" PATH="$D$prefix/bin:$PATH" MS_SCHED_PORT="$(free_port)" MS_ENABLE_SSL=0 \
    MS_WORKER_NUM=2 bash -c 'bash "$1/run_dynamic_cluster_1.sh" 127.0.0.1 "$2" & bash "$1/run_dynamic_cluster_2.sh" 127.0.0.1 "$2"; wait $!' - \
    "$scripts" "$T/job.yaml"
ok "without them it names what is missing, before it starts anything" says "msschedd is not in" env -C "$T/started" \
    PATH=/usr/bin:/bin bash "$scripts/run_dynamic_cluster.sh" "$T/job.yaml" 2

# ---- a host builds only what it runs: a node without check and SQLite, a head node without oneDNN's room
mkdir "$T/pkgconfig"
pkg-config --variable pc_path pkg-config | tr : '\n' | while read -r folder; do
    find "$folder" -maxdepth 1 -name '*.pc' ! -name check.pc ! -name sqlite3.pc -exec ln -sf -t "$T/pkgconfig" {} + 2>/dev/null
done
without() { PKG_CONFIG_LIBDIR=$T/pkgconfig meson setup "$1" "$ROOT" "${@:2}"; }
programs() { ninja -C "$1" -t targets all | sed -n 's/: .*LINKER.*//p' | grep -vE '\.(a|so)' | xargs -n1 basename | sort | paste -sd' '; }
ok "without check the tests cannot be built" bash -c '! "$@"' - env PKG_CONFIG_LIBDIR="$T/pkgconfig" meson setup "$T/whole" "$ROOT"
ok "a node needs neither check nor SQLite" without "$T/node" -Dtests=false -Dscheduler=false
ok "and builds two programs and the examples" [ "$(programs "$T/node" | sed 's/libmsworker[^ ]* //g')" = "msctl msworker points train" ]
ok "a head node that does not train" meson setup "$T/head" "$ROOT" -Dtests=false -Dworker=false
ok "builds two" [ "$(programs "$T/head")" = "msctl msschedd" ]
ok "the tests want both" says "say -Dtests=false, too" meson setup "$T/none" "$ROOT" -Dworker=false

# ---- an upgrade
echo '# by hand' >>"$D$config/msworker.conf"
ok "a second install works" install
ok "and keeps what the operator wrote" grep -q '^# by hand$' "$D$config/msworker.conf"
finish
