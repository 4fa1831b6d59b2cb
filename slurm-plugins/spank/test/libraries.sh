#!/usr/bin/env bash
# libraries.sh PLUGIN: it needs nothing but the C library, which srun and slurmstepd have. Each of them loads it, at each step.
set -euo pipefail
needed=$(readelf -dW "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
more=$(grep -vxE 'lib[cm]\.so\.6|ld-linux.*' <<<"$needed" || true)
[ -z "$more" ] || { echo "$1 needs what is not linked into it: $more"; exit 1; }
