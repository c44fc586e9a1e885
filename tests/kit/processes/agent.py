"""Agents as real processes, for tests.

    with AgentProcess(configuration(namespace), kubeconfig=cluster.kubeconfig).start() as agent:
        agent.wait_until_ready()
        agent.wait_for_log("Starting workers")
    assert agent.exit_code == 0

An agent listens on free ports of its own choice, which flags name. At the end of the block it is stopped by
SIGTERM, and killed if that does not help.
"""

import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self, TypeVar

from kit.eventually import PATIENCE, eventually
from localprocesses.ports import free_port

T = TypeVar("T")

PROJECT = Path(__file__).resolve().parents[3]


HEAD = {"apiVersion": "resourcemanager.config.gardener.cloud/v1alpha1", "kind": "ResourceManagerConfiguration"}


def sole_configuration(**sections: Any) -> dict[str, Any]:
    """A configuration of an agent that is alone with its clusters: it sees all namespaces, and leads without a lease."""
    unlimited = {"qps": 1000, "burst": 1300}
    return {
        **HEAD,
        "leaderElection": {"leaderElect": False, "resourceNamespace": "default"},
        "sourceClientConnection": unlimited,
        "targetClientConnection": unlimited,
        "logFormat": "json",
        **sections,
    }


def configuration(namespace: str, **sections: Any) -> dict[str, Any]:
    """A configuration of an agent that keeps to a namespace, with a lease that is quickly handed over.

    A lease and an end that bear pauses of a busy machine: an agent that is killed leaves its lease for a minute.
    Sections are those of the file; they replace, or for `leaderElection` are added to, what stands here.
    """
    election = {
        "leaderElect": True,
        "resourceNamespace": namespace,
        "leaseDuration": "60s",
        "renewDeadline": "40s",
        "retryPeriod": "200ms",
        **sections.pop("leaderElection", {}),
    }
    return {
        **HEAD,
        "gracefulShutdownTimeout": "30s",
        "leaderElection": election,
        "sourceClientConnection": {"namespaces": [namespace]},
        "targetClientConnection": {"namespaces": [namespace]},
        **sections,
    }


class AgentEnded(Exception):
    """It ended before what a test waits for."""


class AgentProcess:
    """One agent.

    Args:
        config: what its configuration file holds: an object, or its text.
        kubeconfig: of the source cluster.
        target_kubeconfig: of the target cluster; none: the source.
        arguments: further arguments, or instead of `--config` and addresses if `bare`.
        environment: added to a nearly empty environment.
    """

    program = "agent"
    prefix: tuple[str, ...] = ()
    """A command that runs the program."""

    def __init__(
        self,
        config: Mapping[str, Any] | str | None,
        *,
        kubeconfig: Path | None = None,
        target_kubeconfig: Path | None = None,
        arguments: tuple[str, ...] = (),
        bare: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="agent-")
        files = Path(self._directory.name)
        self.log_file, self.output_file = files / "log", files / "output"
        self.probe_port, self.metrics_port = free_port(), free_port()
        self.arguments = list(arguments)
        if not bare:
            path = files / "config.yaml"
            path.write_text(config if isinstance(config, str) else json.dumps(config))
            self.arguments += [
                f"--config={path}",
                f"--health-probe-bind-address=127.0.0.1:{self.probe_port}",
                f"--metrics-bind-address=127.0.0.1:{self.metrics_port}",
            ]
        kubeconfigs = {"KUBECONFIG": kubeconfig, "TARGET_KUBECONFIG": target_kubeconfig}
        self._environment = {
            "PATH": os.environ["PATH"],
            # Set while branches are measured: without it, none of this process would be.
            **{name: text for name, text in os.environ.items() if name == "COVERAGE_PROCESS_CONFIG"},
            **{name: str(path) for name, path in kubeconfigs.items() if path},
            **(environment or {}),
        }
        self._process: subprocess.Popen[bytes] | None = None
        self.started_at = 0.0
        self.exit_code: int | None = None

    # --- life

    def start(self) -> Self:
        with self.log_file.open("wb") as log, self.output_file.open("wb") as output:
            self.started_at = time.monotonic()
            self._process = subprocess.Popen(
                [*self.prefix, sys.executable, "-m", self.program, *self.arguments],
                cwd=PROJECT,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=log,
            )
        return self

    @property
    def process(self) -> "subprocess.Popen[bytes]":
        assert self._process is not None, "the agent was not started"
        return self._process

    @property
    def pid(self) -> int:
        return self.process.pid

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self, *, seconds: float = PATIENCE) -> int:
        """The exit code."""
        self.exit_code = self.process.wait(seconds)
        return self.exit_code

    def stop(self, *, seconds: float = PATIENCE) -> int:
        """Ends it as a kubelet would; returns the exit code, negative if it had to be killed."""
        if self.process.poll() is None:
            self.signal(signal.SIGTERM)
        try:
            return self.wait(seconds=seconds)
        except subprocess.TimeoutExpired:
            return self.kill()

    def kill(self) -> int:
        self.process.kill()
        return self.wait()

    def __enter__(self) -> Self:
        return self if self._process else self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *_: object) -> None:
        self.stop()
        if error is not None:  # pytest shows it with the failed test
            print(f"--- log of agent {self.pid}, exit code {self.exit_code}\n{self.log}", file=sys.stderr)
        self._log, self._output = self.log, self.output
        self._directory.cleanup()

    # --- what it reports

    _log = _output = ""

    @property
    def log(self) -> str:
        """Standard error so far."""
        # It may end within a character while it is being written.
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else self._log

    @property
    def output(self) -> str:
        """Standard output so far."""
        return self.output_file.read_text() if self.output_file.exists() else self._output

    @property
    def entries(self) -> list[dict[str, Any]]:
        """The log entries, if the log format is JSON; lines that are none, or not whole yet, are left out."""
        lines = self.log.rpartition("\n")[0].splitlines()
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]

    def messages(self) -> list[str]:
        return [entry["msg"] for entry in self.entries]

    def wait_for_log(self, message: str, *, seconds: float = PATIENCE) -> dict[str, Any]:
        """The first entry with this message."""
        return self.wait_for(
            lambda: next((entry for entry in self.entries if entry["msg"] == message), None),
            what=f"the log entry {message!r}",
            seconds=seconds,
        )

    def wait_for(
        self,
        found: Callable[[], T | None],
        *,
        what: str,
        seconds: float = PATIENCE,
        state: Callable[[], object] | None = None,
    ) -> T:
        """What `found` returns once it is true; fails at once when the agent ends before."""

        def found_or_ended() -> T | None:
            result = found()
            if not result and self.process.poll() is not None:
                raise AgentEnded(f"while waiting for {what}:\n{self.output}{self.log[-4000:]}")
            return result

        return eventually(found_or_ended, what, seconds=seconds, state=state or (lambda: self.log[-4000:]))

    # --- what it serves

    def probe(self, path: str = "/readyz") -> tuple[int, str]:
        """Status and body of a health probe; status 0 if it does not answer."""
        return _get(f"http://127.0.0.1:{self.probe_port}{path}")

    def wait_until_ready(self, *, seconds: float = PATIENCE) -> Self:
        self.wait_for(lambda: self.probe()[0] == 200, what="/readyz to be good", seconds=seconds)
        return self

    def wait_until_leading(self, *, seconds: float = PATIENCE) -> Self:
        self.wait_for(self.is_leading, what="leadership", seconds=seconds)
        return self

    def is_leading(self) -> bool:
        return self.metric("leader_election_master_status") == 1

    def metrics(self) -> dict[str, float]:
        """Series as they are written, labels in order, to their values."""
        lines = _get(f"http://127.0.0.1:{self.metrics_port}/metrics")[1].splitlines()
        samples = (line.rpartition(" ") for line in lines if line and not line.startswith("#"))
        return {series: float(value) for series, _, value in samples}

    def metric(self, name: str) -> float | None:
        """The sum of all series of this name, or of the one series if labels are given; None if there is none."""
        values = [value for series, value in self.metrics().items() if name in {series, series.partition("{")[0]}]
        return sum(values) if values else None

    @property
    def resident_bytes(self) -> int:
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGESIZE")


class QuickAgentProcess(AgentProcess):
    """Periods may be shorter than a configuration allows."""

    program = "tests.kit.processes.quick_agent"


class AgentWithOtherClock(AgentProcess):
    """Its environment has CLOCK_AHEAD_SECONDS."""

    program = "tests.kit.processes.agent_with_other_clock"


def _get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=30) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
    except (OSError, http.client.HTTPException):
        return 0, ""
