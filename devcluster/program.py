"""The programs of this project, run in the way of a user: a command line, a configuration file, a log file.

A program belongs to its cluster: it runs under the cluster's supervisor and ends with it, however the demo ends.
"""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from devcluster.cluster import Cluster
from localprocesses import supervisor
from localprocesses.components import Files
from localprocesses.ended import is_final
from localprocesses.local import HOST, LocalProcessError, is_good, wait_until
from localprocesses.ports import free_ports
from process.composition import IDENTITY

_READY_SECONDS = _COMMAND_SECONDS = 900.0
_LOG_LINES = 15
_OF_USERS = ("TARGET_KUBECONFIG", "GARDEN_KUBECONFIG")


class Program:
    """`python -m <module> --config FILE`, for a cluster that is source and target.

    Args:
        config: content of the file without the addresses of its servers.
        name: name of the process, its log and its file; the module's by default.
        servers: servers without probes and metrics, as in the file.
        kubeconfig: access to the cluster; by default that of the administrator.
        arguments: further ones of its command line.
    """

    def __init__(
        self,
        module: str,
        cluster: Cluster,
        config: dict[str, Any],
        *,
        name: str = "",
        servers: dict[str, Any] | None = None,
        kubeconfig: Path | None = None,
        arguments: Sequence[str] = (),
    ) -> None:
        self.name = name or module
        self.log = Files(cluster.state).log(self.name)
        self.config_file = cluster.state / f"{self.name}.json"
        self._module, self._arguments = module, arguments
        self._cluster = cluster
        self._kubeconfig = kubeconfig or cluster.kubeconfig
        health, metrics = free_ports(2)
        self.probes = f"{HOST}:{health}"
        self.metrics = f"http://{HOST}:{metrics}/metrics"
        own = {"healthProbes": health, "metrics": metrics}
        self._config = {
            "apiVersion": "resourcemanager.config.gardener.cloud/v1alpha1",
            "kind": "ResourceManagerConfiguration",
            "server": {name: {"bindAddress": HOST, "port": port} for name, port in own.items()} | (servers or {}),
            **config,
        }

        self.config_file.write_text(json.dumps(self._config, indent=2))

    @classmethod
    def is_serving(cls, cluster: Cluster, name: str) -> bool:
        """Whether the program of this name runs, and is ready by its configuration file."""
        found = cluster.component_states().get(name)
        if found is None or found["exit"] is not None:
            return False
        config_file = cluster.state / f"{name}.json"
        if not config_file.exists():  # it is not one of this project
            return True
        server = json.loads(config_file.read_text())["server"]["healthProbes"]
        return is_good(f"http://{HOST}:{server['port']}/readyz")

    def start(self) -> None:
        """Start the program in place of a previous process, and return when /readyz succeeds.

        Raises:
            LocalProcessError: it never does.
        """
        # The demo must not use the user's own clusters.
        environment = ["env", *(f"--unset={name}" for name in _OF_USERS)]
        environment += [f"KUBECONFIG={self._kubeconfig}", f"{IDENTITY}={self.name}"]
        command = [sys.executable, "-m", self._module, "--config", str(self.config_file), *self._arguments]
        self.stop(kill=True)  # what it runs outlives its crash, and is taken over
        supervisor.ask(self._cluster.state, "start", name=self.name, command=[*environment, *command])
        what = f"the {self.name} to be ready"
        wait_until(self._is_ready, what=what, within=_READY_SECONDS, pause=0.02, explain=self.log_end)

    def run(self, command: str, *arguments: str) -> None:
        """Run a command of the administrator, with the same file.

        Raises:
            LocalProcessError: it fails.
        """
        environment = {name: value for name, value in os.environ.items() if name not in _OF_USERS}
        try:
            done = subprocess.run(
                [sys.executable, "-m", self._module, command, "--config", str(self.config_file), *arguments],
                env=environment | {"KUBECONFIG": str(self._cluster.kubeconfig)},
                capture_output=True,
                text=True,
                timeout=_COMMAND_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise LocalProcessError(f"{self.name} {command} takes longer than {_COMMAND_SECONDS:.0f} s") from error
        if done.returncode:
            raise LocalProcessError(f"{self.name} {command} failed: {done.stderr or done.stdout}")

    def check(self) -> None:
        """Check that the program runs, or may do so soon.

        Raises:
            LocalProcessError: it has ended for good, or again and again.
        """
        found = self._cluster.component_states()[self.name]
        if is_final(found):
            raise LocalProcessError(f"the {self.name} ended with {found['exit']}; {self.log_end()}")

    def _is_ready(self) -> bool:
        self.check()
        return is_good(f"http://{self.probes}/readyz")

    def log_end(self) -> str:
        end = "\n  ".join(self.log.read_text(errors="replace").splitlines()[-_LOG_LINES:])
        return f"the end of its log:\n  {end}"

    def stop(self, *, kill: bool = False) -> None:
        """End the program, if it runs; without `kill` gracefully, and the supervisor kills it after two seconds."""
        with contextlib.suppress(LocalProcessError):
            supervisor.ask(self._cluster.state, "stop", name=self.name, kill=kill)
