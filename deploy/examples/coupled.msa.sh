#!/bin/sh
# Two programs on two modules, one MPI_COMM_WORLD: msactl submit coupled.msa.sh [PROGRAM]
#
#MSA --job-name coupled --time 10 --output coupled-%j.out
#MSA -m cluster -n 2 : -m booster -N 2 -n 4

set -e
program=${1:-./hello}

echo "job $MSA_JOB_ID on $MSA_NODELIST, the script runs on $MSA_NODE"

# A step over both components, with the tasks that were asked for.
msactl run "$program" : -m booster "$program"

# Steps of one component each, side by side.
msactl run -m cluster sh -c 'echo "prepare on $MSA_NODE"' &
msactl run -m booster -n 2 sh -c 'echo "compute on $MSA_NODE"' &
wait
