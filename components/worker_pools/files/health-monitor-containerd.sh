#!/bin/bash
# Restarts a container runtime that does not answer any more.
set -o nounset
sleep 60
while true; do
  if timeout 60 ctr containers list >/dev/null; then
    sleep 10
  else
    echo "containerd does not answer; it is restarted"
    pkill -KILL containerd
    sleep 60
  fi
done
