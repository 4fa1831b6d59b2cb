#!/bin/bash
#SBATCH --job-name=storage --time=5 --output=%x-%j.out
#SBATCH --partition=cluster --nodes=2
#SBATCH hetjob
#SBATCH --partition=dam --nodes=1 --ntasks-per-node=1

# The second component is storage: its node's local disk, filled once, from which all others read. It lives as long as
# the job.
store=/tmp/store.$SLURM_JOB_ID
address=$PWD/store-address.$SLURM_JOB_ID

srun --het-group=1 bash -c "mkdir -p $store && seq 1000 >$store/input.dat"
srun --het-group=1 bash -c "
  cd $store
  python3 -u -c '
import functools, http.server, os, socket
server = http.server.ThreadingHTTPServer((\"\", 0), http.server.SimpleHTTPRequestHandler)
with open(\"$address.part\", \"w\") as file:
    file.write(f\"{socket.gethostname()}:{server.server_port}\")
os.rename(\"$address.part\", \"$address\")
server.serve_forever()'" &
storage=$!
until [ -s "$address" ]; do sleep 0.1; done

srun --het-group=0 python3 -c "
import socket, urllib.request
data = urllib.request.urlopen('http://$(cat "$address")/input.dat').read()
print(socket.gethostname(), 'read', len(data.split()), 'numbers')"

kill "$storage"
wait
srun --het-group=1 rm -rf "$store"
rm -f "$address"
