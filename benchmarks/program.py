"""The measured programs, as processes, with their usage of the machine.

    with Agent(cluster, directory) as agent:
        agent.start()
        agent.wait_until_ready()
        before = agent.cpu_seconds()

At the end of the block they are ended, killed if necessary.
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
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from config.webhooks import COMPONENT
from devcluster.cluster import Cluster
from localprocesses.local import HOST, LocalProcessError, is_good, wait_until
from localprocesses.pki import serving_pair
from localprocesses.ports import free_port, free_ports

USER_AGENT = "gardener-resource-manager/"
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
"""Election for long runs: if other work takes the CPU for seconds, a Lease of 15 seconds is lost."""


class Process:
    """`python -m COMMAND`, with its output in the file `log`.

    Args:
        port: port for HTTPS, if it serves any.
        probes: port of its probes; without one it is ready when `port` accepts connections.
        metrics: port of its metrics.
    """

    def __init__(
        self,
        *command: str,
        log: Path,
        environment: Mapping[str, str] | None = None,
        port: int = 0,
        probes: int = 0,
        metrics: int = 0,
    ) -> None:
        self.port = port
        self.url = f"https://{HOST}:{port}"
        self._command = command
        self._log = log
        self._environment = environment or {}
        self._probes = probes
        self._metrics = metrics
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> float:
        """Start the process, and return the time by `time.monotonic`."""
        started = time.monotonic()
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", *self._command],
                env={"PATH": os.environ["PATH"], **self._environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        return started

    def wait_until_ready(self) -> float:
        """Wait until it is ready, and return the time."""

        def is_ready() -> bool:
            self.check()
            return self.is_ready()

        what = f"{self._command[0]} to be ready"
        return wait_until(is_ready, what=what, within=_START_SECONDS, pause=0.005, explain=self.log_end)

    def is_ready(self) -> bool:
        if self._probes:
            return is_good(f"http://{HOST}:{self._probes}/readyz")
        with socket.socket() as connection:
            return connection.connect_ex((HOST, self.port)) == 0

    def check(self) -> None:
        """Check that the process runs.

        Raises:
            LocalProcessError: it has ended.
        """
        if self._running.poll() is not None:
            raise LocalProcessError(f"{self._command[0]} ended with {self._running.returncode}; {self.log_end()}")

    def stop(self) -> None:
        """End the process like a kubelet."""
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
        """Send the signal, and wait for the end."""
        self._running.send_signal(by)
        self._running.wait(_STOP_SECONDS)
        self._process = None

    def log_end(self) -> str:
        return f"the end of its log:\n{self.log[-_LOG_BYTES:]}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def log(self) -> str:
        """All its output."""
        return self._log.read_text(errors="replace")

    # --- usage

    @property
    def pid(self) -> int:
        return self._running.pid

    def cpu_seconds(self) -> float:
        """User and system time since its start."""
        fields = self._proc("stat").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_mib(self) -> float:
        return self._memory("VmRSS")

    def peak_mib(self) -> float:
        """Maximum since the start or `forget_peak`."""
        return self._memory("VmHWM")

    def forget_peak(self) -> None:
        with contextlib.suppress(OSError):
            Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    def scrape(self) -> str:
        """Answer at `/metrics`."""
        with urllib.request.urlopen(f"http://{HOST}:{self._metrics}/metrics", timeout=10) as answer:
            text: str = answer.read().decode()
        return text

    def metric(self, begin: str) -> float:
        """Sum of the series with this prefix."""
        return sum(float(line.rpartition(" ")[2]) for line in self.scrape().splitlines() if line.startswith(begin))

    @property
    def _running(self) -> "subprocess.Popen[bytes]":
        if self._process is None:
            raise LocalProcessError(f"{self._command[0]} was not started")
        return self._process

    def _proc(self, file: str) -> str:
        self.check()
        return Path(f"/proc/{self.pid}/{file}").read_text()

    def _memory(self, name: str) -> float:
        found = next(line for line in self._proc("status").splitlines() if line.startswith(f"{name}:"))
        return int(found.split()[1]) / 1024


class Program(Process):
    """Program of `python -m agent`, with ports of its own; its files go into `directory`.

    Args:
        settings: its configuration, without the addresses of its servers.
        kubeconfig: access to its cluster.
        name: name of its files.
    """

    def __init__(self, settings: Mapping[str, Any], *, directory: Path, kubeconfig: Path, name: str) -> None:
        self._config = directory / f"{name}.json"
        self._settings = settings
        environment = {"KUBECONFIG": str(kubeconfig)}
        log = directory / f"{name}.log"
        super().__init__("agent", "--config", str(self._config), log=log, environment=environment)

    def start(self) -> float:
        self._probes, self._metrics = free_ports(2)
        server = {"healthProbes": _bound(self._probes), "metrics": _bound(self._metrics)}
        self._config.write_text(json.dumps({**self._settings, "server": server}))
        return super().start()

    def passes(self, controller: str = "managedresource") -> int:
        """Number of passes of a controller."""
        return int(self.metric(f'controller_runtime_reconcile_total{{controller="{controller}"'))


class Agent(Program):
    """Resource manager of a cluster that is source and target.

    Args:
        controllers: further blocks of the section `controllers` of its configuration.
        sections: other sections, in place of the default ones.
        kubeconfig: access to the cluster, by default as its administrator.
    """

    def __init__(
        self,
        cluster: Cluster,
        directory: Path,
        *,
        controllers: Mapping[str, Any] | None = None,
        sections: Mapping[str, Any] | None = None,
        kubeconfig: Path | None = None,
        name: str = "agent",
    ) -> None:
        settings = {
            **CONFIG,
            **(sections or {}),
            "controllers": {**CONFIG["controllers"], **(controllers or {})},
        }
        super().__init__(settings, directory=directory, kubeconfig=kubeconfig or cluster.kubeconfig, name=name)


def make_certificate(directory: Path) -> None:
    """Create a certificate of a server on this machine; clients that trust this file trust the server."""
    pair = serving_pair([HOST])
    (directory / "tls.crt").write_bytes(pair.certificate)
    (directory / "tls.key").write_bytes(pair.key)


def bare_server(directory: Path) -> Process:
    port = free_port()
    return Process("benchmarks.bare_webhook", str(directory), str(port), port=port, log=directory / "bare.log")


def admission_server(
    cluster: Cluster, directory: Path, webhooks: Mapping[str, Any], *, kubeconfig: Path | None = None
) -> Process:
    """Admission server with metrics and usual logging; its access to the cluster is by default that of the
    administrator.
    """
    file = {name: CONFIG[name] for name in ("apiVersion", "kind", "leaderElection")} | {"webhooks": webhooks}
    return _webhook_server(cluster, directory, file, kubeconfig=kubeconfig)


def garden_webhooks(cluster: Cluster, directory: Path) -> Process:
    """Like `admission_server`, for the garden API."""
    return _webhook_server(cluster, directory, {"apiVersion": COMPONENT.api_version, "kind": COMPONENT.kind})


def _webhook_server(
    cluster: Cluster, directory: Path, configured: Mapping[str, Any], *, kubeconfig: Path | None = None
) -> Process:
    port, probes, metrics = free_ports(3)
    config = {
        **configured,
        "server": {
            "webhooks": {**_bound(port), "tls": {"serverCertDir": str(directory)}},
            "healthProbes": _bound(probes),
            "metrics": _bound(metrics),
        },
    }
    file = directory / "config.json"
    file.write_text(json.dumps(config))
    return Process(
        *("webhooks", "--config", str(file)),
        log=directory / "webhooks.log",
        environment={"KUBECONFIG": str(kubeconfig or cluster.kubeconfig)},
        port=port,
        probes=probes,
        metrics=metrics,
    )


def _bound(port: int) -> dict[str, Any]:
    return {"bindAddress": HOST, "port": port}
