#!/usr/bin/env bash
# Runs programs with properties (rapidcheck) with random seeds: 20 seeds of each, so 20 times the cases of a plain run.
# properties_soak.sh FOLDER PROGRAM:PARAMETERS...   PARAMETERS as in RC_PARAMS, without a seed; may be empty.
# MSA_PROPERTY_SEEDS: seeds of each program, 20 unless set.
set -euo pipefail

folder=${1:?folder of the programs}
shift
(($#)) || { echo "no program with properties: expected PROGRAM:PARAMETERS"; exit 1; }
seeds=${MSA_PROPERTY_SEEDS:-20}
[[ $seeds =~ ^[1-9][0-9]*$ ]] || { echo "MSA_PROPERTY_SEEDS '$seeds': expected a number from 1"; exit 1; }
output=$(mktemp)
trap 'rm -f "$output"' EXIT
failed=0
for entry in "$@"; do
  program=${entry%%:*}
  parameters=${entry#*:}
  for ((i = 0; i < seeds; i++)); do
    seed=$(od -An -N8 -tu8 /dev/urandom | tr -d ' ')
    with="${parameters:+$parameters }seed=$seed"
    if RC_PARAMS=$with "$folder/$program" >"$output" 2>&1; then
      echo "passed  $program  $with"
    else
      failed=$((failed + 1))
      cat "$output"
      echo "FAILED  RC_PARAMS='$with' $folder/$program"
    fi
  done
done
echo "$(($# * seeds)) runs, $failed failed"
((failed == 0))
