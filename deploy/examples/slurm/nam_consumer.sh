#!/bin/bash
#SBATCH --job-name=nam-consumer --time=5 --output=%x-%j.out
#SBATCH --partition=booster --nodes=2 --ntasks=3

# mpicc.openmpi -o nam_window_attach ../nam_window_attach.c        (with the directory of msa_mpi.h by -I, if it is not found)
# Another job, on another module and with another number of processes, reads what nam_producer.sh has left, and removes it. To
# be submitted with --dependency=afterok:JOB, the producer's number.
srun ./nam_window_attach "msa-nam:buffer-$USER" delete
