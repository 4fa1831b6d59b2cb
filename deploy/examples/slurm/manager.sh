#!/bin/bash
#SBATCH --job-name=manager --time=5 --output=%x-%j.out
#SBATCH --partition=cluster --nodes=1 --ntasks=1

# mpicc.openmpi -o manager manager.c
# The job has one node. For each bundle of work the manager spawns workers on the booster (MPI_Comm_spawn): Slurm starts a
# companion job for them, 'msa:JOB.N' in squeue, which ends with the bundle.
srun ./manager
