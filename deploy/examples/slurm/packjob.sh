#!/bin/bash
#SBATCH --job-name=packjob --time=5 --output=%x-%j.out
#SBATCH --partition=cluster --nodes=1
#SBATCH packjob
#SBATCH --partition=booster --nodes=2

# As scripts from before Slurm 20.02 have it; sbatch says that the word is deprecated.
srun --pack-group=0,1 hostname
