#!/bin/bash
set -o errexit
if ! systemctl is-enabled --quiet sshd.service; then systemctl enable sshd.service; fi
if ! systemctl is-active --quiet sshd.service; then systemctl start sshd.service; fi
