#!/usr/bin/env bash
# symbols.sh: the symbols of a build's libraries against the declarations of include/cera.h.
#   tools/symbols.sh BUILD              libcera.so and libcera.a export exactly what cera.h declares; and the library calls
#                                       nothing that prints, ends the process or reads the environment
#   tools/symbols.sh BUILD --self-test  a planted global and a planted getenv must be caught
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Functions and variables that cera.h marks for export: the name before the first parenthesis of each marked declaration.
declared() {
    cc -E -P -x c include/cera.h | tr '\n' ' ' | tr ';{}' '\n\n\n' | grep -F 'visibility("default")' |
        sed 's/__attribute__((visibility("default")))//' | sed -E 's/.*[ *](cera_[a-z0-9_]+) *(\(.*)?$/\1/' | sort -u
}
# Global definitions, without the versions and the linker's own marks (_edata, _init ...).
exported() {
    case $1 in *.a) nm -g --defined-only "$1" ;; *) nm -D --defined-only "$1" ;; esac |
        awk 'NF == 3 { print $3 }' | sed 's/@.*//' | grep -vE '^(_init|_fini|_edata|_end|__bss_start)$' | sort -u || true
}
forbidden='^(getenv|secure_getenv|setenv|putenv|printf|fprintf|vprintf|vfprintf|dprintf|puts|fputs|putchar|putc|fputc|perror|stdout|stderr|exit|_exit|_Exit|quick_exit|abort|raise|system|popen|__printf_chk|__fprintf_chk|__vfprintf_chk|__vprintf_chk)$'

# check LIBRARY: prints what is wrong, 1 on anything.
check() {
    local wrong=0 names
    exported "$1" >"$work/exported"
    names=$(comm -13 "$work/declared" "$work/exported")
    [ -z "$names" ] || { wrong=1; sed "s|^|$1 exports, and cera.h does not declare: |" <<<"$names"; }
    names=$(comm -23 "$work/declared" "$work/exported")
    [ -z "$names" ] || { wrong=1; sed "s|^|cera.h declares, and $1 does not export: |" <<<"$names"; }
    case $1 in *.a) names=$(nm -u "$1" | awk '{ print $NF }' | grep -E "$forbidden" | sort -u || true) ;; *) names= ;; esac
    [ -z "$names" ] || { wrong=1; sed "s|^|$1 calls |" <<<"$names"; }
    return $wrong
}

declared >"$work/declared"
[ -s "$work/declared" ] || { echo "symbols: found no declaration in include/cera.h"; exit 1; }

if [ "${2:-}" = --self-test ]; then
    for planted in 'int cera_planted(void) { return 1; }' 'char *getenv(const char *); static char *f(void) { return getenv("X"); } void *const cera_version_[] = {(void *)f};'; do
        cp "$build/libcera.a" "$work/planted.a"
        echo "$planted" | cc -c -x c -o "$work/planted.o" -
        ar r "$work/planted.a" "$work/planted.o"
        if check "$work/planted.a" >"$work/out"; then
            echo "symbols self-test: not caught: $planted"
            exit 1
        fi
        grep -qE 'cera_planted|calls getenv' "$work/out" || { echo "symbols self-test: failed for another reason"; cat "$work/out"; exit 1; }
    done
    echo "symbols self-test: 2 planted symbols caught"
    exit 0
fi

status=0
for library in "$build/libcera.so" "$build/libcera.a"; do check "$library" || status=1; done
[ $status = 1 ] || echo "symbols: $(wc -l <"$work/declared") names in cera.h, in libcera.so and in libcera.a, and no others"
exit $status
