#!/bin/bash
set -o errexit
config=/etc/containerd/config.toml
if [ ! -s "$config" ]; then
  mkdir -p /etc/containerd
  containerd config default > "$config"
fi
