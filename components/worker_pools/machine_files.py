"""Common units of systemd and files on machines of all pools.

A part consists of units and files that belong together. At its start (`first`), a machine only has those that fetch the
others, and those of SSH users.
"""

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kube.objects import Object

ALL_READ, OWNER_READS, GROUP_READS, ALL_RUN = 0o644, 0o600, 0o640, 0o755
_OWNER_RUNS = 0o744
_ENVIRONMENT = "EnvironmentFile=/etc/environment"


@dataclass(frozen=True, slots=True)
class Part:
    units: Sequence[Object] = ()
    files: Sequence[Object] = ()


def file(path: str, content: str | bytes, permissions: int = ALL_READ) -> Object:
    raw = content.encode() if isinstance(content, str) else content
    inline = {"encoding": "b64", "data": base64.b64encode(raw).decode()}
    return {"path": path, "permissions": permissions, "content": {"inline": inline}}


def readable(path: str, content: str) -> Object:
    """A file with readable content in the OperatingSystemConfig."""
    return {"path": path, "permissions": ALL_READ, "content": {"inline": {"encoding": "", "data": content}}}


def from_image(path: str, image: str) -> Object:
    """A program from an image, which has it under the same file name."""
    reference = {"image": image, "filePathInImage": f"/{path.rpartition('/')[2]}"}
    return {"path": path, "permissions": ALL_RUN, "content": {"imageRef": reference}}


def unit(
    name: str, sections: str, *, command: str = "", enable: bool | None = None, paths: Sequence[str] = ()
) -> Object:
    found: Object = {"name": name, "content": sections.strip()}
    if command:
        found["command"] = command
    if enable is not None:
        found["enable"] = enable
    return found | ({"filePaths": list(paths)} if paths else {})


# --- certificate authorities

_UPDATE = "/var/lib/ssl/update-local-ca-certificates.sh"
_AUTHORITIES = ("/var/lib/ca-certificates-local/ROOTcerts.crt", "/etc/pki/trust/anchors/ROOTcerts.pem")
_UPDATE_SCRIPT = f"""#!/bin/bash
set -o errexit -o nounset
# Debian looks for what it trusts in one place, SUSE and Red Hat in another.
if [ -d /usr/local/share/ca-certificates ]; then
  cp -f {_AUTHORITIES[0]} /usr/local/share/ca-certificates/
fi
if command -v update-ca-certificates >/dev/null; then
  update-ca-certificates --fresh
elif command -v update-ca-trust >/dev/null; then
  update-ca-trust
fi
"""
_UPDATE_UNIT = f"""
[Unit]
Description=Trusts the certificate authorities of the cluster
DefaultDependencies=no
Wants=systemd-tmpfiles-setup.service clean-ca-certificates.service
After=systemd-tmpfiles-setup.service clean-ca-certificates.service
Before=sysinit.target kubelet.service
ConditionPathIsReadWrite=/etc/ssl/certs
ConditionPathIsReadWrite=/var/lib/ca-certificates-local
ConditionPathExists=!/var/lib/kubelet/kubeconfig-real
[Service]
Type=oneshot
ExecStart={_UPDATE}
[Install]
WantedBy=multi-user.target
"""


def authorities(bundle: bytes) -> Part:
    """Args: bundle: PEM."""
    paths = [_UPDATE, *_AUTHORITIES]
    return Part(
        [unit("updatecacerts.service", _UPDATE_UNIT, command="start", paths=paths)],
        [file(_UPDATE, _UPDATE_SCRIPT, _OWNER_RUNS), *(file(each, bundle) for each in _AUTHORITIES)],
    )


# --- the container runtime

_ROTATION, _MONITOR, _INIT = (
    "/etc/systemd/containerd.conf",
    *(f"/opt/bin/{each}" for each in ("health-monitor-containerd", "init-containerd")),
)
_ROTATION_CONFIG = """/var/log/pods/*/*/*.log {
    rotate 14
    copytruncate
    missingok
    notifempty
    compress
    daily
    dateext
    dateformat -%Y%m%d-%s
    create 0644 root root
}
"""
_MONITOR_SCRIPT = """#!/bin/bash
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
"""
_INIT_SCRIPT = """#!/bin/bash
set -o errexit
config=/etc/containerd/config.toml
if [ ! -s "$config" ]; then
  mkdir -p /etc/containerd
  containerd config default > "$config"
fi
"""
_INSTALL = "[Install]\nWantedBy=multi-user.target\n"


def containers() -> Part:
    """Part for containerd: initial configuration, rotation of logs, and restarts when it does not respond."""
    rotation = "[Unit]\nDescription=Rotates logs of containers\n[Service]\nExecStart=/usr/sbin/logrotate -s"
    rotation += f" /var/lib/containerd-logrotate.status {_ROTATION}\n{_INSTALL}"
    timer = "[Unit]\nDescription=Rotates logs of containers every ten minutes\n"
    timer += f"[Timer]\nOnCalendar=*:0/10\nAccuracySec=1min\nPersistent=true\n{_INSTALL}"
    monitor = f"[Unit]\nDescription=Restarts containerd if it does not answer\nAfter=containerd.service\n{_INSTALL}"
    monitor += f"[Service]\nRestart=always\n{_ENVIRONMENT}\nExecStart={_MONITOR}"
    init = f"[Unit]\nDescription=Gives containerd its first configuration\n{_INSTALL}"
    init += f"[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart={_INIT}"
    return Part(
        [
            unit("containerd-logrotate.service", rotation, enable=True, paths=[_ROTATION]),
            unit("containerd-logrotate.timer", timer, command="start", enable=True),
            unit("containerd-monitor.service", monitor, command="start", enable=True, paths=[_MONITOR]),
            unit("containerd-initializer.service", init, command="start", enable=True),
        ],
        [
            readable(_ROTATION, _ROTATION_CONFIG),
            file(_MONITOR, _MONITOR_SCRIPT, ALL_RUN),
            # Decimal as in the original, and kept: another mode would change the file on every node.
            file(_INIT, _INIT_SCRIPT, 744),
        ],
    )


# --- the operating system

_SYSCTL = "/etc/sysctl.d/99-k8s-general.conf"
_PARAMETERS: Mapping[str, str] = {
    "fs.aio-max-nr": "262144",
    "fs.file-max": "20000000",
    "fs.inotify.max_user_instances": "8192",
    "fs.inotify.max_user_watches": "524288",
    "kernel.softlockup_all_cpu_backtrace": "1",
    "kernel.softlockup_panic": "1",
    "kernel/keys/root_maxbytes": "25000000",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "net.core.netdev_max_backlog": "16384",
    "net.core.rmem_max": "16777216",
    "net.core.somaxconn": "32768",
    "net.core.wmem_max": "16777216",
    "net.ipv4.conf.all.forwarding": "1",
    "net.ipv4.conf.default.forwarding": "1",
    "net.ipv4.conf.default.log_martians": "1",
    "net.ipv4.ip_local_port_range": "32768 65535",
    "net.ipv4.tcp_max_syn_backlog": "8096",
    "net.ipv4.tcp_retries2": "8",
    "net.ipv4.tcp_rmem": "4096 12582912 16777216",
    "net.ipv4.tcp_slow_start_after_idle": "0",
    "net.ipv4.tcp_tw_reuse": "1",
    "net.ipv4.tcp_wmem": "4096 12582912 16777216",
    "net.ipv6.conf.all.forwarding": "1",
    "net.ipv6.conf.default.forwarding": "1",
    "vm.max_map_count": "135217728",
    "vm.memory_failure_early_kill": "1",
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
}


def kernel(parameters: Mapping[str, Any]) -> Part:
    """Args: parameters: specific ones of a pool."""
    wanted = {**_PARAMETERS, **{name: str(value) for name, value in parameters.items()}}
    content = "".join(f"{name} = {value}\n" for name, value in sorted(wanted.items()))
    restarted = {"name": "systemd-sysctl.service", "command": "restart", "enable": True, "filePaths": [_SYSCTL]}
    return Part([restarted], [readable(_SYSCTL, content)])


def logs() -> Part:
    return Part(files=[readable("/etc/systemd/journald.conf", "[Journal]\nMaxFileSec=24h\nMaxRetentionSec=14day\n")])


# --- SSH

_KEYS, _USER, _SSH = (
    "/var/lib/gardener-user-authorized-keys",
    *(f"/var/lib/{each}/run.sh" for each in ("gardener-user", "sshd-ensurer")),
)
_USER_SCRIPT = f"""#!/bin/bash
set -o errexit -o nounset
id gardener >/dev/null 2>&1 || useradd gardener --create-home
install --directory --owner=gardener --group=gardener --mode=700 /home/gardener/.ssh
install --owner=gardener --group=gardener --mode=400 {_KEYS} /home/gardener/.ssh/authorized_keys
rule="gardener ALL=(ALL) NOPASSWD:ALL"
if ! grep --quiet --line-regexp --fixed-strings "$rule" /etc/sudoers.d/99-gardener-user 2>/dev/null; then
  echo "$rule" > /etc/sudoers.d/99-gardener-user
fi
"""
_USER_UNIT = (
    "[Unit]\nDescription=Lets the user of the Shoot log in\nAfter=sshd.service\n[Service]\nRestart=on-failure\n"
)
_USER_UNIT += f"{_ENVIRONMENT}\nExecStart={_USER}"
_SSH_SCRIPT = {
    True: """#!/bin/bash
set -o errexit
if ! systemctl is-enabled --quiet sshd.service; then systemctl enable sshd.service; fi
if ! systemctl is-active --quiet sshd.service; then systemctl start sshd.service; fi
""",
    False: """#!/bin/bash
if systemctl is-enabled --quiet sshd.service; then systemctl disable sshd.service; fi
if systemctl is-active --quiet sshd.service; then systemctl stop sshd.service; fi
pkill --exact sshd || true
""",
}
_SSH_UNIT = "[Unit]\nDescription=Runs the SSH server, or not\nDefaultDependencies=no\n"
_SSH_UNIT += f"[Service]\nType=simple\nRestart=always\nRestartSec=15\nExecStart={_SSH}\n{_INSTALL}"


def logins(public_keys: Sequence[bytes]) -> Iterator[Part]:
    """Part of the SSH server, and if there are users, their part. Args: public_keys: of users; empty disables SSH."""
    yield Part(
        [unit("sshd-ensurer.service", _SSH_UNIT, command="start", paths=[_SSH])],
        [file(_SSH, _SSH_SCRIPT[bool(public_keys)], ALL_RUN)],
    )
    if public_keys:
        keys = b"\n".join(each.rstrip() for each in public_keys) + b"\n"
        yield Part(
            [unit("gardener-user.service", _USER_UNIT, enable=True)],
            [file(_KEYS, keys), file(_USER, _USER_SCRIPT, ALL_RUN)],
        )
