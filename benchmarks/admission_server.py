"""The admission server and the bare reference as processes, with what they use of the machine."""

import datetime
import ipaddress
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

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from benchmarks.program import free_ports
from devcluster.cluster import Cluster
from devcluster.errors import DevclusterError

HOST = "127.0.0.1"
_START_SECONDS = 60.0
_STOP_SECONDS = 20.0


def make_certificate(directory: Path) -> None:
    """A certificate for this machine that is its own CA, as a server wants it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "benchmark")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(HOST))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (directory / "tls.crt").write_bytes(certificate.public_bytes(Encoding.PEM))
    (directory / "tls.key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


class Served:
    """A process that serves HTTPS at `port`; ended at the end of the block."""

    def __init__(
        self, arguments: Sequence[str], *, port: int, environment: Mapping[str, str], ready_url: str, log: Path
    ) -> None:
        self.url = f"https://{HOST}:{port}"
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
                log = self._log.read_text(errors="replace")[-2000:]
                raise DevclusterError(f"the server at {self.url} does not get ready; the end of its log:\n{log}")
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


def admission_server(cluster: Cluster, directory: Path, webhooks: Mapping[str, Any]) -> Served:
    """With metrics, and logging as usual."""
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
        environment={"KUBECONFIG": str(cluster.kubeconfig)},
        ready_url=f"http://{HOST}:{probes}/readyz",
        log=directory / "webhooks.log",
    )
