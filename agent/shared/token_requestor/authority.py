"""The CA bundle of the connection to a cluster: what others need to talk to it as this process does.

It is in the kubeconfig, in a file that the kubeconfig names, or, in a Pod, beside the token of the service account.
Files are read again now and then, since they may be replaced.
"""

import base64
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from kube.runtime.connection import SERVICE_ACCOUNT
from kube.runtime.kubeconfig import ConfigurationError, find_entry, read_kubeconfig

_REMEMBERED_SECONDS = 60.0

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


@dataclass(eq=False, slots=True)
class Authority:
    """Called for the bundle; empty if there is none, or none that can be read."""

    kubeconfig: str
    """Path of the kubeconfig in use; empty: the configuration of a Pod."""
    in_cluster: Path = SERVICE_ACCOUNT / "ca.crt"
    """Where a Pod has the CA of its cluster."""
    now: Callable[[], float] = time.monotonic
    _bundle: bytes = field(default=b"", init=False)
    _read_at: float = field(default=float("-inf"), init=False)

    def __call__(self) -> bytes:
        now = self.now()
        if now - self._read_at >= _REMEMBERED_SECONDS:
            self._read_at = now
            try:
                self._bundle = self._read()
            except (OSError, ValueError, TypeError, AttributeError, ConfigurationError) as error:
                # It may be about to be replaced: what was read last is good until then.
                # What a parser says may quote the text.
                problem = str(error) if isinstance(error, OSError) else type(error).__name__
                file = self.kubeconfig or str(self.in_cluster)
                log.error("The CA bundle of the target cluster could not be read", file=file, error=problem)
        return self._bundle

    def _read(self) -> bytes:
        if not self.kubeconfig:
            return self.in_cluster.read_bytes()
        path = Path(self.kubeconfig)
        document = read_kubeconfig(path)
        # Lenient: the connection was made from the same file, so that all that is needed is right.
        context = find_entry(document, "contexts", document.get("current-context"), "context") or {}
        cluster = find_entry(document, "clusters", context.get("cluster"), "cluster") or {}
        if data := cluster.get("certificate-authority-data"):
            return base64.b64decode(str(data))
        if file := cluster.get("certificate-authority"):
            return (path.parent / str(file)).read_bytes()
        return b""
