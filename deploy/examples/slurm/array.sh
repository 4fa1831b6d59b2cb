#!/bin/bash
#SBATCH --job-name=array --time=5 --output=%x-%A_%a.out
#SBATCH --partition=cluster --nodes=1 --ntasks=1 --array=0-3

# Plain jobs beside the modular ones. An array cannot be heterogeneous; each of its jobs may lie in another module by a
# submission of its own.
srun bash -c 'echo "index $SLURM_ARRAY_TASK_ID on $SLURMD_NODENAME"'
