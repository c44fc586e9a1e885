#!/bin/bash
set -o errexit -o nounset
# Debian looks for what it trusts in one place, SUSE and Red Hat in another.
if [ -d /usr/local/share/ca-certificates ]; then
  cp -f /var/lib/ca-certificates-local/ROOTcerts.crt /usr/local/share/ca-certificates/
fi
if command -v update-ca-certificates >/dev/null; then
  update-ca-certificates --fresh
elif command -v update-ca-trust >/dev/null; then
  update-ca-trust
fi
