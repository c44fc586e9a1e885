#!/bin/bash
set -o errexit -o nounset
id gardener >/dev/null 2>&1 || useradd gardener --create-home
install --directory --owner=gardener --group=gardener --mode=700 /home/gardener/.ssh
install --owner=gardener --group=gardener --mode=400 /var/lib/gardener-user-authorized-keys /home/gardener/.ssh/authorized_keys
rule="gardener ALL=(ALL) NOPASSWD:ALL"
if ! grep --quiet --line-regexp --fixed-strings "$rule" /etc/sudoers.d/99-gardener-user 2>/dev/null; then
  echo "$rule" > /etc/sudoers.d/99-gardener-user
fi
