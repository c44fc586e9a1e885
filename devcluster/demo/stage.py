"""The frame of a demo: it has a cluster and a screen, starts programs, stays until Ctrl-C, and leaves nothing."""

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from devcluster.api import Api
from devcluster.cluster import Cluster
from devcluster.demo.screen import Screen
from devcluster.garden import objects
from devcluster.program import Program
from kube.objects import Object
from kube.resources import Resource
from localprocesses.local import LocalProcessError, wait_until

_PATIENCE_SECONDS = 180.0
"""Maximum seconds on a busy machine."""
_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


class Demo:
    nodes = 0
    """Number of nodes of its cluster."""

    def __init__(self, cluster: Cluster, screen: Screen) -> None:
        self._cluster = cluster
        self._screen = screen
        self._programs: list[Program] = []

    def show(self) -> None:
        """Show everything, from top to bottom."""
        raise NotImplementedError

    def _attend(self) -> None:
        """Hook that runs each second as long as the demo stays up."""

    def stay(self) -> None:
        """Stay up forever.

        Raises:
            LocalProcessError: a program has ended.
        """
        self._screen.heading("Everything stays up until Ctrl-C.")
        while True:
            for program in self._programs:
                program.check()
            self._attend()
            time.sleep(1)

    def stop(self) -> None:
        with self._screen.step("stopping everything", timed=False) as step:
            for program in self._programs:
                program.stop()
            self._cluster.stop()
            step.outcome = "everything is stopped, nothing is left"

    # --- parts of scenes

    @property
    def _api(self) -> Any:
        return self._cluster.api

    def _start(self, program: Program) -> None:
        self._programs.append(program)
        program.start()

    def _command(self, text: str) -> None:
        self._screen.heading(f"$ {text}")

    def _plugin(self, arguments: str, *, code: int = 0) -> None:
        command = f"kubectl {arguments}"
        self._command(command)
        self._screen.show(self._plugin_output(command, code=code))

    def _plugin_output(self, command: str, *, code: int = 0, with_errors: bool = True) -> str:
        return _plugin_output(self._cluster, command, code=code, with_errors=with_errors)

    def _create(self, file: Path, *, api: Api | None = None, where: str = "") -> list[Object]:
        """Apply the objects in a file to the garden.

        With `api`, to another cluster, which `where` names, or the way of kubectl to it.
        """
        self._command(f"kubectl {where}apply --filename={shown(file)}")
        to = api or self._api
        return [objects.apply(to, obj) for obj in yaml.safe_load_all(file.read_bytes())]

    def _get(self, resource: Resource, name: str, namespace: str = "") -> Object:
        obj: Object = self._api.get(resource.path(namespace=namespace, name=name))
        return obj

    def _patch(self, resource: Resource, patch: Object, namespace: str, name: str) -> None:
        self._api.patch(resource.path(namespace=namespace, name=name), patch)

    def _show_table(self, command: str, path: str, *extra: str, api: Api | None = None) -> None:
        """Show the table of kubectl; the API server makes it, so kubectl need not be installed.

        `extra` are fields of the metadata to show first; `api` is that of another cluster.
        """
        self._command(command)
        table = (api or self._api).request("GET", path, headers={"Accept": _TABLE})
        columns = [i for i, column in enumerate(table["columnDefinitions"]) if not column["priority"]]
        header = [*extra, *(table["columnDefinitions"][i]["name"].upper() for i in columns)]
        rows = [
            [
                *(row["object"]["metadata"][name.lower()] for name in extra),
                *("<none>" if row["cells"][i] is None else str(row["cells"][i]) for i in columns),
            ]
            for row in table["rows"]
        ]
        self._screen.table([header, *rows])

    def _wait_for(
        self,
        what: str,
        holds: Callable[[], bool],
        *,
        seconds: float = _PATIENCE_SECONDS,
        pause: float = 0.02,
        explain: Callable[[], str] = str,
    ) -> None:
        """Wait until the condition holds.

        Raises:
            LocalProcessError: a program has ended, or the time is over.
        """

        def holds_by_now() -> bool:
            for program in self._programs:
                program.check()
            return holds()

        def reasons() -> str:
            logs = (f"{program.name}: {program.log_end()}" for program in self._programs)
            return "\n".join(filter(None, [explain(), *logs]))

        wait_until(holds_by_now, what=what, within=seconds, pause=pause, explain=reasons)


def run(demo: type[Demo], *, name: str, once: bool) -> None:
    """Show everything, then stay until Ctrl-C, or not with `once`. Nothing is left running in any case.

    Raises:
        LocalProcessError: a step failed.
        KeyboardInterrupt: it was interrupted though `once`.
    """
    if Cluster.running(name):
        raise LocalProcessError(
            f"a demo runs as {name!r} already; end it with Ctrl-C, or choose another name: make demo NAME=x"
        )
    try:
        # Both have the same effect; they are set since a shell lets its background jobs ignore Ctrl-C.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.default_int_handler)
        with _stage(demo, name) as staged:
            staged.show()
            if not once:
                staged.stay()
    except KeyboardInterrupt:
        if once:
            raise


@contextmanager
def _stage(demo: type[Demo], name: str) -> Iterator[Demo]:
    """End everything after the block, also after an error."""
    staged = demo(Cluster(name=name, nodes=demo.nodes), Screen())
    try:
        yield staged
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        staged.stop()


def shown(file: Path) -> str:
    """Path relative to the project, for users."""
    return str(file.relative_to(Path(__file__).parents[2]))


# --- plugins of kubectl: commands of users, run without kubectl


_PLUGIN_SECONDS = 60.0
_COLUMNS = "110"
_MODULES = {"mr": "kubectl.mr", "gardener": "kubectl.garden"}


def _plugin_output(cluster: Cluster, command: str, *, code: int, with_errors: bool) -> str:
    """Return the output of a command, such as `kubectl mr get`, also that to stderr if `with_errors`.

    Raises:
        LocalProcessError: it ends with another code.
    """
    _, plugin, *arguments = shlex.split(command)
    try:
        done = subprocess.run(
            [sys.executable, "-m", _MODULES[plugin], *arguments],
            env={**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "COLUMNS": _COLUMNS, "NO_COLOR": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if with_errors else subprocess.PIPE,
            text=True,
            timeout=_PLUGIN_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise LocalProcessError(f"{command} takes longer than {_PLUGIN_SECONDS:.0f} s") from error
    if done.returncode != code:
        raise LocalProcessError(f"{command} ended with {done.returncode}: {done.stdout}{done.stderr or ''}")
    return done.stdout.rstrip()
