#!/usr/bin/env bash
# symbols.sh PLUGIN NAME...: the plugin gives these symbols and no others.
set -euo pipefail
plugin=$1
shift
given=$(nm -D --defined-only "$plugin" | awk '{ print $3 }' | sort)
failed=0
for name in "$@"; do
  grep -qx "$name" <<<"$given" || { echo "$plugin lacks the symbol '$name'"; failed=1; }
done
others=$(grep -vxF -f <(printf '%s\n' "$@") <<<"$given" | grep -vx plugin_version || true)
[ -z "$others" ] || { echo "$plugin shows what Slurm does not ask for: $others"; failed=1; }
exit $failed
