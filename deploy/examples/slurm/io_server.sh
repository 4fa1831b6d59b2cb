#!/bin/bash
#SBATCH --job-name=io-server --time=5 --output=%x-%j.out
#SBATCH --partition=cluster --nodes=2 --ntasks-per-node=2
#SBATCH hetjob
#SBATCH --partition=dam --nodes=1 --ntasks-per-node=1

# An I/O server on the DAM node, a step in the background, which a shutdown step ends when the model is through.
address=$PWD/address.$SLURM_JOB_ID
data=$PWD/lines.$SLURM_JOB_ID
server="$SLURM_SUBMIT_DIR/line_server.py"

srun --het-group=1 python3 "$server" serve "$address" "$data" &
srun --het-group=0 python3 "$server" send "$address" step-1
srun --het-group=0 python3 "$server" send "$address" step-2
srun --het-group=0 --nodes=1 --ntasks=1 python3 "$server" shutdown "$address"
wait
rm -f "$address"
echo "$(wc -l <"$data") lines written"
