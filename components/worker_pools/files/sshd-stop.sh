#!/bin/bash
if systemctl is-enabled --quiet sshd.service; then systemctl disable sshd.service; fi
if systemctl is-active --quiet sshd.service; then systemctl stop sshd.service; fi
pkill --exact sshd || true
