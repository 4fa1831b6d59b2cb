#!/usr/bin/env bash
# check_format.sh ROOT: every source file is as clang-format 14 writes it. To mend one: clang-format-14 -i FILE
set -euo pipefail
cd "$1"
mapfile -t files < <(find daemon pmix-server nam-emulator cli tests deploy -type f \( -name '*.cc' -o -name '*.h' -o -name '*.c' \) | sort)
if ! errors=$(clang-format-14 --dry-run -Werror "${files[@]}" 2>&1); then
  sed -n 's/:[0-9]*:[0-9]*: error: code should be clang-formatted.*//p' <<<"$errors" | sort | uniq -c | sed 's/^/places to mend: /'
  echo "run: clang-format-14 -i FILE"
  exit 1
fi
echo "${#files[@]} files are formatted"
