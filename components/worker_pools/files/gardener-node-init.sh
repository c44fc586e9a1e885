#!/bin/bash
set -o errexit -o nounset -o pipefail
image="${image}"
directory="$(mktemp -d)"
trap 'ctr images unmount "$directory" && rm -rf "$directory"' EXIT
ctr images pull "$image" --hosts-dir /etc/containerd/certs.d
ctr images mount "$image" "$directory"
mkdir -p /opt/bin
cp -f "$directory/gardener-node-agent" /opt/bin/gardener-node-agent
chmod +x /opt/bin/gardener-node-agent
/opt/bin/gardener-node-agent bootstrap --config=/var/lib/gardener-node-agent/config.yaml
