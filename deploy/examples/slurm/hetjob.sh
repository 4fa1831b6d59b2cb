#!/bin/bash
#SBATCH --job-name=hetjob --time=5 --output=%x-%j.out
#SBATCH --partition=cluster --nodes=2 --ntasks-per-node=2
#SBATCH hetjob
#SBATCH --partition=booster --nodes=1 --ntasks-per-node=4

# The same program on both components: one step, numbered through.
srun --het-group=0,1 bash -c 'echo "task $SLURM_PROCID of $SLURM_NTASKS on $SLURMD_NODENAME"'
# A program for each.
srun --het-group=0 echo cluster : --het-group=1 echo booster
