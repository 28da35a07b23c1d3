#!/usr/bin/env bash
# format.sh: clang-format 14 over every C file of the tree (tracked or new), in place; --check only tells, with the lines.
set -euo pipefail
cd "$(dirname "$0")/.."
formatter=$(command -v clang-format-14 || true)
[ -n "$formatter" ] || { echo "format.sh: needs clang-format-14 (tools/install-deps ci)" >&2; exit 1; }
mapfile -t files < <(git ls-files -co --exclude-standard -- '*.c' '*.h' | while read -r f; do [ ! -f "$f" ] || echo "$f"; done)
[ ${#files[@]} -gt 0 ] || { echo "format.sh: no C files" >&2; exit 1; }
if [ "${1:-}" = --check ]; then
    printf '%s\0' "${files[@]}" | xargs -0 -P 2 -n 20 "$formatter" --dry-run --Werror --ferror-limit=3
    echo "format: ${#files[@]} files"
else
    printf '%s\0' "${files[@]}" | xargs -0 -P 2 -n 20 "$formatter" -i
fi
