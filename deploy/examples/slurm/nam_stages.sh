#!/bin/bash
#SBATCH --job-name=nam-stages --time=5 --output=%x-%j.out
#SBATCH --partition=cluster --nodes=1
#NAM create stages-%j 1M
#NAM stage_in /etc/hostname stages-%j
#NAM stage_out stages-%j /tmp/stages.out

# A region is made and filled before the job has nodes, and saved when it has none any more (burst_buffer.lua).
echo "regions: $MSA_SLURM_NAM_REGION"
