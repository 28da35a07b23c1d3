#!/usr/bin/env bash
# layers.sh: checks who includes whom against the layer table of docs/DESIGN.md (the fenced block under "## Layers").
#   tools/layers.sh                checks the tree; each violation is a line, exit 1
#   tools/layers.sh --self-test    plants violations in a copy, one at a time: each must be caught
#
# The rules. A file of src/<layer> includes its own layer, those that the table allows (and what these may include), and cera.h.
# programs/ and bindings/ include their own files and cera.h. A header x_int.h belongs to its folder. src/ uses libc, libm and
# threads: C11's headers, strings.h and pthread.h anywhere, intrinsics in kernels/, everything else of the system only in base/.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

check_tree() {
    cd "$1"
    local tops=()
    for top in src include programs bindings; do [ ! -d $top ] || tops+=($top); done
    {
        awk '/^## Layers/ { on = 1; next } on && /^```/ { if (inside) exit; inside = 1; next } inside { print "T\t" $0 }' docs/DESIGN.md
        find "${tops[@]}" -type f \( -name '*.[ch]' -o -name '*.def' -o -name '*.inc' \) | sed 's/^/F\t/'
        grep -rnE '^[[:space:]]*#[[:space:]]*include' --include='*.[ch]' --include='*.def' --include='*.inc' "${tops[@]}" | sed 's/^/I\t/'
    } | awk -F'\t' "$rules"
}

rules=$(cat <<'AWK'
function trim(s) { gsub(/^[ \t]+|[ \t]+$/, "", s); return s }
function dirname_of(p) { sub(/\/[^\/]*$/, "", p); return p }
function bad(why) { print place ": " why; violations++ }

# "a <- {b, c} ; ..." : allowed[b, a] = 1
function read_rules(text,    chains, n, i, steps, m, j, left, nl, right, nr, a, b) {
    n = split(text, chains, ";")
    for (i = 1; i <= n; i++) {
        m = split(chains[i], steps, "<-")
        for (j = 1; j < m; j++) {
            nl = split(steps[j], left, ","); nr = split(steps[j + 1], right, ",")
            for (a = 1; a <= nl; a++) for (b = 1; b <= nr; b++) allow(left[a], right[b])
        }
    }
}
function allow(below, above) {
    gsub(/[{} \t]/, "", below); gsub(/[{} \t]/, "", above)
    if (below == "" || above == "") return
    allowed[above, below] = 1; layer[above] = 1; layer[below] = 1; n_rules++
}
function close_over(    changed, x, y, z) {
    do {
        changed = 0
        for (x in layer) for (y in layer) if ((x, y) in allowed)
            for (z in layer) if ((y, z) in allowed && !((x, z) in allowed)) { allowed[x, z] = 1; changed = 1 }
    } while (changed)
}
function layer_of(path,    parts) {
    split(path, parts, "/")
    return parts[1] == "src" ? parts[2] : parts[1]
}
function resolve(from, name) {
    if ((dirname_of(from) "/" name) in exists) return dirname_of(from) "/" name
    if (("src/" name) in exists) return "src/" name
    if (("include/" name) in exists) return "include/" name
    if (("programs/" name) in exists) return "programs/" name
    return ""
}
function check_quoted(from, name,    target, mine, theirs) {
    target = resolve(from, name)
    if (target == "") { bad("includes \"" name "\", which is no file of the project"); return }
    mine = layer_of(from); theirs = layer_of(target)
    if (target == "include/cera.h") return
    if (target ~ /_int\.h$/ && mine != theirs) { bad("includes " target ", which belongs to its own folder"); return }
    if (mine == theirs) return
    if (mine == "include") { bad("the public header includes " target); return }
    if (mine == "programs" || mine == "bindings") { bad(mine " may include cera.h only, not " target); return }
    if (!((mine, theirs) in allowed)) bad("layer " mine " may not include " theirs " (" target ")")
}
function check_system(from, name,    mine) {
    mine = layer_of(from)
    if (from !~ /^src\// || mine == "base" || (name in everywhere)) return
    if (mine == "kernels" && name ~ /^(immintrin|x86intrin|arm_neon|arm_acle|wasm_simd128)\.h$/) return
    bad("layer " mine " includes <" name ">: what is the system's own belongs in base/")
}
BEGIN {
    n = split("assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg stdatomic " \
              "stdbool stddef stdint stdio stdlib stdnoreturn string strings tgmath threads time uchar wchar wctype pthread", names, " ")
    for (i = 1; i <= n; i++) everywhere[names[i] ".h"] = 1
}
$1 == "T" { table = table " ; " $2 }
$1 == "F" { exists[$2] = 1; split($2, parts, "/"); if (parts[1] == "src") seen[parts[2]] = 1 }
$1 == "I" { includes[++n_includes] = substr($0, 3) }
END {
    read_rules(table); close_over()
    if (n_rules == 0) { print "docs/DESIGN.md: no layer table under \"## Layers\""; exit 1 }
    for (name in seen) if (!(name in layer)) { place = "src/" name; bad("a layer that the table of docs/DESIGN.md does not know") }
    for (i = 1; i <= n_includes; i++) {
        line = includes[i]
        from = line; sub(/:.*/, "", from)
        match(line, /:[0-9]+:/); place = from substr(line, RSTART, RLENGTH - 1)
        if (match(line, /"[^"]*"/)) check_quoted(from, substr(line, RSTART + 1, RLENGTH - 2))
        else if (match(line, /<[^>]*>/)) check_system(from, substr(line, RSTART + 1, RLENGTH - 2))
    }
    printf "layers: %d includes, %d rules, %d violations\n", n_includes, n_rules, violations
    exit violations > 0
}
AWK
)

# plant FILE LINE: the tree with that line added to that file must fail.
plant() {
    rm -rf "$copy/tree"
    mkdir -p "$copy/tree/docs"
    for top in src include programs bindings; do [ ! -d "$root/$top" ] || cp -r "$root/$top" "$copy/tree/"; done
    cp "$root/docs/DESIGN.md" "$copy/tree/docs/"
    mkdir -p "$copy/tree/$(dirname "$1")"
    echo "$2" >>"$copy/tree/$1"
    if (check_tree "$copy/tree") >"$copy/out"; then
        echo "layers self-test: '$2' in $1 was not caught"
        return 1
    fi
    grep -qF "$1" "$copy/out" || { echo "layers self-test: '$2' in $1 failed for another reason:"; cat "$copy/out"; return 1; }
}

if [ "${1:-}" = --self-test ]; then
    copy=$(mktemp -d)
    trap 'rm -rf "$copy"' EXIT
    failed=0
    plant src/base/planted.c '#include "format/gguf.h"' || failed=1
    plant src/plan/planted.h '  #  include "kernels/kernels.h"' || failed=1
    plant src/text/planted.c '#include "../format/gguf.h"' || failed=1
    plant src/model/planted.c '#include "backend/backend.h"' || failed=1
    plant src/engine/planted.c '#include "base/arena_int.h"' || failed=1
    plant src/format/planted.c '#include <sys/mman.h>' || failed=1
    plant src/newlayer/planted.c '#include "base/status.h"' || failed=1
    plant programs/planted.c '#include "base/json.h"' || failed=1
    plant include/planted.h '#include "base/status.h"' || failed=1
    [ $failed = 0 ] && echo "layers self-test: 9 planted violations caught"
    exit $failed
fi
check_tree "$root"
