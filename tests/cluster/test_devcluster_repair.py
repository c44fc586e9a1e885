"""Programs that end are started again, `status` names those that do not serve, and `up` repairs them."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from devcluster.__main__ import main
from devcluster.cluster import Cluster
from devcluster.processes import running_in
from kit.eventually import eventually
from localprocesses import supervisor
from localprocesses.ended import is_final, reason
from localprocesses.state import directory

FAKE = """
import os, socket, subprocess, sys
if len(sys.argv) > 2:
    subprocess.Popen(["sh", "-c", "sleep 600; :", sys.argv[2]])
socket.create_server(("127.0.0.1", int(sys.argv[1])))
open("starts", "a").write("x")
signal = __import__("signal").pause()
"""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """Directory of a supervisor that keeps its components running."""
    place = tmp_path / "of"
    (place / "logs").mkdir(parents=True)
    supervisor.launch(place, owner=os.getpid())
    supervisor.ask(place, "own", owner=os.getpid(), keep=True)
    yield place
    if place.exists():
        supervisor.ask(place, "shutdown")
        eventually(lambda: not running_in(place))


def state_of(place: Path, name: str = "it") -> dict[str, Any]:
    found: dict[str, Any] = supervisor.ask(place, "status")["components"][name]
    return found


def start(place: Path, *arguments: object, script: str = FAKE) -> None:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    supervisor.ask(place, "start", name="it", command=command)


def test_a_program_that_is_killed_runs_again(place: Path) -> None:
    start(place, 0)
    pid = state_of(place)["pid"]
    eventually((place / "starts").exists)
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: (place / "starts").read_text() == "xx")
    assert state_of(place)["pid"] != pid
    assert not is_final(state_of(place))


def test_a_program_that_ends_again_and_again_is_named_with_its_last_error(place: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        start(place, taken.getsockname()[1])
        eventually(lambda: is_final(state_of(place)), "three attempts")
        found = state_of(place)
        expected = "ended with 1, and is started again in 4 s: OSError: [Errno 98] Address already in use"
        assert reason(place, "it", {**found, "wait": 3.6}).startswith(expected)
    supervisor.ask(place, "stop", name="it", kill=False)
    start(place, 0)
    eventually((place / "starts").exists)


def test_one_that_is_stopped_stays_so(place: Path) -> None:
    start(place, 0)
    supervisor.ask(place, "stop", name="it", kill=True)
    assert not supervisor.ask(place, "status")["components"]
    assert [command for command in running_in(place).values() if FAKE in command] == []


@pytest.mark.parametrize("end", ["shutdown", "kill"])
def test_what_a_program_has_started_ends_with_it(place: Path, end: str) -> None:
    """Also another supervisor, as that of the local provider, and what that runs."""
    below = place / "provider" / "run"
    (below / "logs").mkdir(parents=True)
    supervisor.launch(below, owner=supervisor.ask(place, "status")["pid"])
    supervisor.ask(below, "start", name="of-shoot", command=["sleep", "600"])
    shoot = state_of(below, "of-shoot")["pid"]
    start(place, 0, place)
    eventually(lambda: len(running_in(place)) == 4, state=lambda: running_in(place))
    if end == "shutdown":
        supervisor.ask(place, "shutdown")
        eventually(lambda: not running_in(place), state=lambda: running_in(place))
        assert not Path(f"/proc/{shoot}").exists()
    else:
        os.kill(state_of(place)["pid"], signal.SIGKILL)
        eventually(lambda: (place / "starts").read_text() == "xx")
        shells = [pid for pid, command in running_in(place).items() if command[0] == "sh"]
        assert len(shells) == 1


@pytest.mark.usefixtures("devcluster_run")
@pytest.mark.timeout(600)
def test_a_garden_is_repaired(capfd: pytest.CaptureFixture[str]) -> None:
    """After the end of etcd, the API server, and programs whose ports others have taken meanwhile."""
    name = f"repair-{os.getpid()}"
    try:
        assert main(["up", "--garden", "--name", name]) == 0
        cluster = Cluster(name=name, owner=0)
        for component in ("etcd", "kube-apiserver"):
            pid = cluster.component_states()[component]["pid"]
            os.kill(pid, signal.SIGKILL)
            eventually(lambda: main(["status", "--name", name]) == 0, "the garden to serve again", seconds=120)
            assert cluster.component_states()[component]["pid"] != pid
        capfd.readouterr()

        os.kill(cluster.component_states()["webhooks"]["pid"], signal.SIGSTOP)
        assert main(["status", "--name", name]) == 1
        assert f"webhooks of '{name}' runs as " in (shown := capfd.readouterr().out)
        assert shown.endswith(f"to repair it: python -m devcluster up --name {name}\n")

        command = [sys.executable, "-m", "devcluster", "up", "--name", name]
        project = Path(__file__).resolve().parents[2]
        both = [subprocess.Popen(command, cwd=project) for _ in range(2)]
        assert [each.wait(300) for each in both] == [0, 0]
        assert main(["status", "--name", name]) == 0
    finally:
        main(["down", "--name", name])
    eventually(lambda: not running_in(directory(name)))
