#!/bin/bash
#SBATCH --job-name=coupled-model --time=5 --output=%x-%j.out
#SBATCH --partition=booster --nodes=2 --ntasks-per-node=4
#SBATCH hetjob
#SBATCH --partition=cluster --nodes=1 --ntasks-per-node=3
#SBATCH hetjob
#SBATCH --partition=cluster --nodes=1 --ntasks-per-node=2
#SBATCH hetjob
#SBATCH --partition=dam --nodes=1 --ntasks-per-node=1

# mpicc.openmpi -o coupled_model coupled_model.c
# Four components in one MPI_COMM_WORLD: the atmosphere on the booster, ocean and land on cluster nodes of their own, the coupler
# on the DAM node.
srun --het-group=0 ./coupled_model atmosphere : --het-group=1 ./coupled_model ocean : \
  --het-group=2 ./coupled_model land : --het-group=3 ./coupled_model coupler
