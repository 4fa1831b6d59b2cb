#!/bin/bash
#SBATCH --job-name=client-server --time=5 --output=%x-%j.out
#SBATCH --partition=cluster --nodes=2 --ntasks-per-node=1
#SBATCH hetjob
#SBATCH --partition=booster --nodes=2 --ntasks-per-node=2

# mpicc.openmpi -o connect ../connect.c
# Each srun is a world of its own. They meet by a published name (MPI_Publish_name, MPI_Comm_accept, MPI_Comm_connect), and go
# their ways again: the server outlives its first client.
srun --het-group=1 ./connect server 2 &
srun --het-group=0 ./connect client
srun --het-group=0 --nodes=1 --ntasks=1 ./connect client
wait
