#!/bin/bash
#SBATCH --job-name=scratch --time=5 --output=%x-%j.out
#SBATCH --partition=cluster --nodes=2
#SBATCH hetjob
#SBATCH --partition=booster --nodes=1

# Hooks of the job itself: a service on every node before the work, removed after it, whatever happened between. Here the
# service is a directory and a process that counts what is put there; a site would raise its file system for the job.
scratch=/tmp/scratch.$SLURM_JOB_ID

raise() {
  srun --het-group=0,1 --ntasks-per-node=1 --overlap bash -c "mkdir -m 700 $scratch && : >$scratch/.ready"
}
remove() {
  srun --het-group=0,1 --ntasks-per-node=1 --overlap bash -c "rm -rf $scratch && [ ! -e $scratch ] && echo \$SLURMD_NODENAME is clean"
}
trap remove EXIT

raise
srun --het-group=0,1 bash -c "[ -e $scratch/.ready ] && echo \$SLURM_PROCID >$scratch/data.\$SLURM_PROCID && ls $scratch"
