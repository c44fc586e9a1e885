"""Common units of systemd and files on machines of all pools; those without computed content are in `files`.

A part consists of units and files that belong together. At its start (`first`), a machine only has those that fetch the
others, and those of SSH users.
"""

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from components.manifest import template
from kube.objects import Object

ALL_READ, OWNER_READS, GROUP_READS, ALL_RUN = 0o644, 0o600, 0o640, 0o755
_OWNER_RUNS = 0o744


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


def text(name: str, **values: str) -> str:
    """Content of a file of this package. Args: values: of its placeholders."""
    return template(__file__, f"files/{name}", **values)


def unit(
    name: str, *, command: str = "", enable: bool | None = None, paths: Sequence[str] = (), **values: str
) -> Object:
    """Args: name: also of the file with its content; values: of placeholders in the file."""
    found: Object = {"name": name, "content": text(name, **values).strip()}
    if command:
        found["command"] = command
    if enable is not None:
        found["enable"] = enable
    return found | ({"filePaths": list(paths)} if paths else {})


_UPDATE = "/var/lib/ssl/update-local-ca-certificates.sh"
_AUTHORITIES = ("/var/lib/ca-certificates-local/ROOTcerts.crt", "/etc/pki/trust/anchors/ROOTcerts.pem")


def authorities(bundle: bytes) -> Part:
    """Part for certificate authorities that the machine trusts. Args: bundle: PEM."""
    paths = [_UPDATE, *_AUTHORITIES]
    return Part(
        [unit("updatecacerts.service", command="start", paths=paths)],
        [
            file(_UPDATE, text("update-local-ca-certificates.sh"), _OWNER_RUNS),
            *(file(each, bundle) for each in _AUTHORITIES),
        ],
    )


_ROTATION, _MONITOR, _INIT = (
    "/etc/systemd/containerd.conf",
    *(f"/opt/bin/{each}" for each in ("health-monitor-containerd", "init-containerd")),
)


def containers() -> Part:
    """Part for containerd: initial configuration, rotation of logs, and restarts when it does not respond."""
    return Part(
        [
            unit("containerd-logrotate.service", enable=True, paths=[_ROTATION]),
            unit("containerd-logrotate.timer", command="start", enable=True),
            unit("containerd-monitor.service", command="start", enable=True, paths=[_MONITOR]),
            unit("containerd-initializer.service", command="start", enable=True),
        ],
        [
            readable(_ROTATION, text("containerd-logrotate.conf")),
            file(_MONITOR, text("health-monitor-containerd.sh"), ALL_RUN),
            # Decimal as in the original, and kept: another mode would change the file on every node.
            file(_INIT, text("init-containerd.sh"), 744),
        ],
    )


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
    return Part(files=[readable("/etc/systemd/journald.conf", text("journald.conf"))])


_KEYS, _USER, _SSH = (
    "/var/lib/gardener-user-authorized-keys",
    *(f"/var/lib/{each}/run.sh" for each in ("gardener-user", "sshd-ensurer")),
)


def logins(public_keys: Sequence[bytes]) -> Iterator[Part]:
    """Part of the SSH server, and if there are users, their part. Args: public_keys: of users; empty disables SSH."""
    yield Part(
        [unit("sshd-ensurer.service", command="start", paths=[_SSH])],
        [file(_SSH, text("sshd-start.sh" if public_keys else "sshd-stop.sh"), ALL_RUN)],
    )
    if public_keys:
        keys = b"\n".join(each.rstrip() for each in public_keys) + b"\n"
        yield Part(
            [unit("gardener-user.service", enable=True)],
            [file(_KEYS, keys), file(_USER, text("gardener-user.sh"), ALL_RUN)],
        )
