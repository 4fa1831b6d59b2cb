#!/bin/bash
#SBATCH --job-name=nam-producer --time=5 --output=%x-%j.out
#SBATCH --partition=cluster --nodes=2 --ntasks-per-node=2
#SBATCH --nam=1M

# mpicc.openmpi -o nam_window_create ../nam_window_create.c
# Leaves its results in network attached memory, a part for each process, under a name; nam_consumer.sh takes them up.
srun ./nam_window_create "buffer-$USER"
