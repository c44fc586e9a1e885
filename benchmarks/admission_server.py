"""The admission server and the bare reference as processes, with what they use of the machine."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.program import free_ports
from devcluster.cluster import Cluster
from devcluster.errors import DevclusterError
from devcluster.pki import serving_pair

HOST = "127.0.0.1"
_START_SECONDS = 60.0
_STOP_SECONDS = 20.0


def make_certificate(directory: Path) -> None:
    """A certificate for this machine, as a server wants it; clients that trust this file trust the server."""
    pair = serving_pair([HOST])
    (directory / "tls.crt").write_bytes(pair.certificate)
    (directory / "tls.key").write_bytes(pair.key)


class Served:
    """A process that serves HTTPS at `port`; ended at the end of the block."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        port: int,
        environment: Mapping[str, str],
        ready_url: str,
        log: Path,
        metrics_url: str = "",
    ) -> None:
        self.url = f"https://{HOST}:{port}"
        self.port = port
        self.metrics_url = metrics_url
        self._ready_url = ready_url
        self._log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", *arguments],
                env={"PATH": os.environ["PATH"], **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise DevclusterError(
                    f"the server at {self.url} does not get ready; the end of its log:\n{self.log[-2000:]}"
                )
            time.sleep(0.05)

    def _is_ready(self) -> bool:
        if not self._ready_url:
            time.sleep(1.0)
            return True
        try:
            with urllib.request.urlopen(self._ready_url, timeout=5):  # noqa: S310 - ours
                return True
        except OSError:
            return False

    def check(self) -> None:
        """Raises DevclusterError if it does not run."""
        if self._process.poll() is not None:
            raise DevclusterError(f"the server ended with {self._process.returncode}; its log:\n{self.log[-2000:]}")

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def log(self) -> str:
        """All that it has written."""
        return self._log.read_text(errors="replace")

    def cpu_seconds(self) -> float:
        """User and system time since its start."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_mib(self) -> float:
        lines = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmRSS:")).split()[1]) / 1024

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def bare_server(directory: Path) -> Served:
    (port,) = free_ports(1)
    arguments = ["benchmarks.bare_webhook", str(directory), str(port)]
    return Served(arguments, port=port, environment={}, ready_url="", log=directory / "bare.log")


def admission_server(
    cluster: Cluster, directory: Path, webhooks: Mapping[str, Any], *, kubeconfig: Path | None = None
) -> Served:
    """With metrics, and logging as usual; reaches the cluster as its administrator unless told otherwise."""
    port, probes, metrics = free_ports(3)
    config = {
        "apiVersion": "resourcemanager.config.gardener.cloud/v1alpha1",
        "kind": "ResourceManagerConfiguration",
        "leaderElection": {"leaderElect": True, "resourceNamespace": "kube-system"},
        "server": {
            "webhooks": {"bindAddress": HOST, "port": port, "tls": {"serverCertDir": str(directory)}},
            "healthProbes": {"bindAddress": HOST, "port": probes},
            "metrics": {"bindAddress": HOST, "port": metrics},
        },
        "webhooks": webhooks,
    }
    file = directory / "config.json"
    file.write_text(json.dumps(config))
    return Served(
        ["webhooks", "--config", str(file)],
        port=port,
        environment={"KUBECONFIG": str(kubeconfig or cluster.kubeconfig)},
        ready_url=f"http://{HOST}:{probes}/readyz",
        metrics_url=f"http://{HOST}:{metrics}/metrics",
        log=directory / "webhooks.log",
    )
