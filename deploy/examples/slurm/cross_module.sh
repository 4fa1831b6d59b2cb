#!/bin/bash
#SBATCH --job-name=cross-module --time=5 --output=%x-%j.out
#SBATCH --partition=cluster --nodes=2 --ntasks-per-node=2
#SBATCH hetjob
#SBATCH --partition=booster --nodes=1 --ntasks-per-node=4

# mpicc.openmpi -o cross_module cross_module.c
# A program for each module, one MPI_COMM_WORLD over both: ranks 0-3 are the solver's, 4-7 the analysis'.
srun --het-group=0 ./cross_module solver : --het-group=1 ./cross_module analysis
