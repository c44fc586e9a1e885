"""An agent as a process, with what it uses of the machine.

    with Agent(cluster, directory) as agent:
        agent.start()
        agent.wait_until_ready()
        before = agent.cpu_seconds()

At the end of the block it is ended, killed if need be.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from devcluster.cluster import Cluster
from devcluster.errors import DevclusterError

USER_AGENT = "gardener-resource-manager/"
_HOST = "127.0.0.1"
_START_SECONDS = 180.0
_STOP_SECONDS = 20.0
_LOG_BYTES = 2000

CONFIG: dict[str, Any] = {
    "apiVersion": "resourcemanager.config.gardener.cloud/v1alpha1",
    "kind": "ResourceManagerConfiguration",
    "leaderElection": {"leaderElect": True, "resourceNamespace": "kube-system"},
    "sourceClientConnection": {"qps": 1000, "burst": 1300},
    "targetClientConnection": {"qps": 1000, "burst": 1300},
    "controllers": {
        "managedResource": {"concurrentSyncs": 10, "syncPeriod": "1m"},
        "health": {"concurrentSyncs": 10, "syncPeriod": "1m"},
    },
}

PATIENT_ELECTION = {
    "leaderElect": True,
    "resourceNamespace": "kube-system",
    "leaseDuration": "120s",
    "renewDeadline": "100s",
    "retryPeriod": "2s",
}
"""For long runs: where other work takes the CPU for seconds, a Lease of 15 seconds is lost."""


class Agent:
    """For a cluster that is source and target; its files go into `directory`.

    Args:
        controllers: blocks of the section `controllers` of its configuration, besides those that are always there.
        sections: other sections, in place of those that are always there.
        kubeconfig: how it reaches the cluster, if not as the administrator.
        name: of its files.
    """

    def __init__(
        self,
        cluster: Cluster,
        directory: Path,
        *,
        controllers: dict[str, Any] | None = None,
        sections: dict[str, Any] | None = None,
        kubeconfig: Path | None = None,
        name: str = "agent",
    ) -> None:
        self._kubeconfig = kubeconfig or cluster.kubeconfig
        self._settings = {
            **CONFIG,
            **(sections or {}),
            "controllers": {**CONFIG["controllers"], **(controllers or {})},
        }
        self._config = directory / f"{name}.json"
        self._log = directory / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._health = self._metrics = ""

    def start(self) -> float:
        """Returns the moment of its start, as `time.monotonic` counts."""
        ports = free_ports(2)
        self._health, self._metrics = (f"http://{_HOST}:{port}" for port in ports)
        servers = dict(zip(("healthProbes", "metrics"), ports, strict=True))
        bound = {"server": {name: {"bindAddress": _HOST, "port": port} for name, port in servers.items()}}
        self._config.write_text(json.dumps(self._settings | bound))
        environment = {"PATH": os.environ["PATH"], "KUBECONFIG": str(self._kubeconfig)}
        started = time.monotonic()
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "agent", "--config", str(self._config)],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        return started

    def wait_until_ready(self) -> float:
        """Returns the moment when /readyz was good."""
        deadline = time.monotonic() + _START_SECONDS
        while not self.is_ready():
            self.check()
            if time.monotonic() > deadline:
                raise DevclusterError(f"the agent is not ready after {_START_SECONDS:.0f} s; {self.log_end()}")
            time.sleep(0.005)
        return time.monotonic()

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self._health}/readyz", timeout=5):  # noqa: S310 - ours
                return True
        except OSError:
            return False

    def check(self) -> None:
        """Raises DevclusterError if it does not run."""
        if self._running.poll() is not None:
            raise DevclusterError(f"the agent ended with {self._running.returncode}; {self.log_end()}")

    def stop(self) -> None:
        """As a kubelet would."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def end(self, by: signal.Signals) -> None:
        """Returns when it has ended."""
        self._running.send_signal(by)
        self._running.wait(_STOP_SECONDS)
        self._process = None

    def log_end(self) -> str:
        return f"the end of its log:\n{self.log[-_LOG_BYTES:]}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def log(self) -> str:
        """All that it has written."""
        return self._log.read_text(errors="replace")

    # --- what it uses

    @property
    def pid(self) -> int:
        return self._running.pid

    @property
    def metrics_url(self) -> str:
        return f"{self._metrics}/metrics"

    def cpu_seconds(self) -> float:
        """User and system time since its start."""
        fields = self._proc("stat").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_mib(self) -> float:
        return self._memory("VmRSS")

    def peak_mib(self) -> float:
        """The highest since the start or `forget_peak`."""
        return self._memory("VmHWM")

    def forget_peak(self) -> None:
        with contextlib.suppress(OSError):
            Path(f"/proc/{self._running.pid}/clear_refs").write_text("5")

    def passes(self, controller: str = "managedresource") -> int:
        """How often it has looked at something."""
        return int(self.metric(f'controller_runtime_reconcile_total{{controller="{controller}"'))

    def metric(self, begin: str) -> float:
        """The sum of the series that begin so."""
        with urllib.request.urlopen(self.metrics_url, timeout=10) as answer:  # noqa: S310 - ours
            lines = answer.read().decode().splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(begin))

    @property
    def _running(self) -> "subprocess.Popen[bytes]":
        if self._process is None:
            raise DevclusterError("the agent was not started")
        return self._process

    def _proc(self, file: str) -> str:
        self.check()
        return Path(f"/proc/{self._running.pid}/{file}").read_text()

    def _memory(self, name: str) -> float:
        found = next(line for line in self._proc("status").splitlines() if line.startswith(f"{name}:"))
        return int(found.split()[1]) / 1024


def free_ports(count: int) -> list[int]:
    # All are held until all are known, so that they differ.
    held = [socket.create_server((_HOST, 0)) for _ in range(count)]
    ports = [int(server.getsockname()[1]) for server in held]
    for server in held:
        server.close()
    return ports
