#!/bin/bash
#SBATCH --job-name=scratch --time=5 --output=%x-%j.out --signal=B:TERM@60
#SBATCH --partition=cluster --nodes=2
#SBATCH hetjob
#SBATCH --partition=booster --nodes=1

# Hooks of the job itself: a service on every node before the work, ended and cleaned away after it. Here the service is a
# directory and a process that counts what is put there; a site would raise its file system for the job.
# The hook runs when the script ends, and 60 s before the time limit (--signal). It starts a step, and Slurm refuses steps of a
# job that is cancelled or over its limit: end such a job by 'scancel --batch --signal=TERM JOB' first, not by 'scancel JOB'.
scratch=/tmp/scratch.$SLURM_JOB_ID

service() {
  mkdir -m 700 "$1" && : >"$1/.ready" || return
  until [ -e "$1/.stop" ]; do
    count=$(ls "$1" | wc -l)
    sleep 0.1
  done
  rm -rf "$1" && echo "$SLURMD_NODENAME is clean, $count files were there"
}
export -f service

on_all_nodes() {
  srun --het-group=0,1 --ntasks-per-node=1 --overlap "$@"
}
raise() {
  on_all_nodes bash -c "service $scratch" &
  server=$!
  on_all_nodes timeout 60 bash -c "until [ -e $scratch/.ready ]; do sleep 0.1; done" || exit
}
remove() {
  trap '' TERM
  if [ -n "$work" ]; then kill "$work" 2>/dev/null; wait "$work"; fi
  on_all_nodes touch "$scratch/.stop"
  wait "$server"
}
trap remove EXIT
trap 'exit 143' TERM

raise
# The work, in the background: bash runs a trap at once in 'wait' alone. An argument makes it last so many seconds.
srun --het-group=0,1 bash -c "echo \$SLURM_PROCID >$scratch/data.\$SLURM_PROCID && ls $scratch && sleep ${1:-1}" &
work=$!
wait "$work"
