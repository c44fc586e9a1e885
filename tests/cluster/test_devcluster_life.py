"""Clusters are found by name, do not disturb each other, and leave nothing behind, however their owner ends."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster import __main__ as command_line
from devcluster.cluster import Cluster
from devcluster.processes import running_in
from kit.eventually import eventually
from localprocesses import supervisor
from localprocesses.local import LocalProcessError, wait_until
from localprocesses.state import directory, is_alive, locked, start_lock, sweep

pytestmark = pytest.mark.usefixtures("devcluster_run")
PROJECT = Path(__file__).resolve().parents[2]

OWNER = """
import sys, time
from devcluster.cluster import Cluster
with Cluster(name=sys.argv[1]) as cluster:
    print("up", flush=True)
    for _ in range(6000):
        time.sleep(0.1)  # a signal that comes just before does not interrupt it
"""


def devcluster(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "devcluster", *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd=PROJECT)


def processes_of(cluster: Cluster) -> list[int]:
    """All processes, of any kind, that were started for the cluster."""
    return [pid for pid in running_in(cluster.state) if pid != os.getpid()]


def supervisor_of(cluster: Cluster) -> int:
    components = {component["pid"] for component in cluster.component_states().values()}
    return next(pid for pid in processes_of(cluster) if pid not in components)


@pytest.fixture
def name() -> Iterator[str]:
    """The name of a cluster that is gone after the test."""
    name = f"life-{os.getpid()}"
    yield name
    Cluster(name=name).stop()


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGINT], ids=["kill -9", "Ctrl-C"])
def test_nothing_is_left_when_the_owner_gets(signum: signal.Signals, name: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, name], cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"up\n"
        cluster = Cluster(name=name)
        assert len(processes_of(cluster)) >= 3
        owner.send_signal(signum)
    eventually(lambda: not processes_of(cluster))
    eventually(lambda: not cluster.state.exists())


def test_nothing_is_left_when_the_owner_is_killed_while_it_starts(name: str) -> None:
    with subprocess.Popen([sys.executable, "-c", OWNER, name], cwd=PROJECT, stdout=subprocess.DEVNULL) as owner:
        cluster = Cluster(name=name)
        eventually(lambda: len(processes_of(cluster)) >= 3)
        owner.kill()
    eventually(lambda: not processes_of(cluster))
    eventually(lambda: not cluster.state.exists())


def test_components_die_with_their_supervisor_and_the_name_can_be_used_again(name: str) -> None:
    cluster = Cluster(name=name).start()
    # Another cluster that starts at this moment sweeps away what is not held.
    with locked(start_lock(cluster.state)):
        os.kill(supervisor_of(cluster), signal.SIGKILL)
        eventually(lambda: not processes_of(cluster))
        # The kernel takes a process's command line before it lets go of its locks.
        eventually(lambda: not cluster.is_running())
        assert cluster.state.exists()
    with Cluster(name=name) as again:
        assert again.api.get("/version")


def test_a_supervisor_is_alive_until_all_that_it_had_is_gone(tmp_path: Path) -> None:
    """Another one in its place starts then."""
    (tmp_path / "logs").mkdir()
    supervisor.launch(tmp_path, owner=os.getpid())
    for number in range(500):
        (tmp_path / f"data-{number}" / "of" / "etcd").mkdir(parents=True)
    supervisor.ask(tmp_path, "shutdown")
    wait_until(lambda: not is_alive(tmp_path), what="its end", within=60.0, pause=0.0)
    assert not [*tmp_path.glob("data-*")]


def test_a_supervisor_leaves_alone_what_has_become_the_place_of_another(tmp_path: Path) -> None:
    """As it does when all above it was removed, and started again, before it missed its owner."""
    place = tmp_path / "run"
    with subprocess.Popen(["sleep", "600"]) as first:
        for owner in (first.pid, os.getpid()):
            shutil.rmtree(place, ignore_errors=True)
            (place / "logs").mkdir(parents=True)
            supervisor.launch(place, owner=owner)
        first.kill()
    eventually(lambda: len(running_in(place)) == 1)
    supervisor.ask(place, "start", name="sleep", command=["sleep", "600"])
    supervisor.ask(place, "shutdown")
    wait_until(lambda: not is_alive(place), what="its end", within=60.0)


def test_remains_of_killed_clusters_are_swept_away_and_those_of_starting_ones_are_not() -> None:
    stale, starting = Cluster(name=f"stale-{os.getpid()}"), Cluster(name=f"starting-{os.getpid()}")
    # Held before there is anything: clusters that other tests start sweep, too, and may be in the middle of it.
    with locked(start_lock(starting.state)):
        for cluster in (stale, starting):
            cluster.state.mkdir()
        start_lock(stale.state).touch()
        sweep()
        eventually(lambda: not stale.state.exists())
        assert starting.state.exists()
    sweep()
    eventually(lambda: not starting.state.exists())


def test_two_names_live_side_by_side_on_the_command_line(name: str) -> None:
    other = f"{name}-b"
    try:
        assert "came up after" in devcluster("up", "--name", name, "--nodes", "0").stdout
        again = devcluster("up", "--name", name, "--nodes", "1")
        assert "is up already" in again.stdout
        assert devcluster("up", "--name", other, "--nodes", "0").returncode == 0
        version = Cluster(name=name).api.get("/version")["gitVersion"]
        assert f", with Kubernetes {version}, at https://" in again.stdout

        listed = devcluster("exec", "--name", name, "--", "kubectl", "get", "nodes", "-o", "name")
        assert listed.stdout == "node/node-0\n"
        assert devcluster("exec", "--name", other, "--", "kubectl", "get", "nodes", "-o", "name").stdout == ""
        failing = devcluster("exec", "--name", other, "--", "sh", "-c", "echo $KUBECONFIG; exit 7")
        assert failing.returncode == 7
        assert failing.stdout == devcluster("kubeconfig", "--name", other).stdout

        assert devcluster("down", "--name", other).stdout == f"the cluster '{other}' is down\n"
        assert devcluster("status", "--name", other).returncode == 1
        status = devcluster("status", "--name", name)
        assert status.returncode == 0
        assert "kube-apiserver" in status.stdout
        eventually(lambda: not processes_of(Cluster(name=other)))
    finally:
        Cluster(name=other).stop()


def test_two_checkouts_have_their_own_clusters(tmp_path: Path) -> None:
    for package in ("devcluster", "localprocesses", "kube"):
        # What is compiled may be rewritten at this moment.
        shutil.copytree(PROJECT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    script = "from localprocesses.state import directory; print(directory('default'))"
    command = [sys.executable, "-c", script]
    here, there = (
        subprocess.run(command, check=True, capture_output=True, text=True, cwd=checkout).stdout.strip()
        for checkout in (PROJECT, tmp_path)
    )
    assert here == str(directory("default"))
    assert there != here


def test_commands_that_need_a_cluster_report_how_to_get_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["kubeconfig", "--name", "nowhere"]) == 1
    assert capsys.readouterr().err == (
        "error: the cluster 'nowhere' is not up; start it by: python -m devcluster up --name nowhere\n"
    )
    assert command_line.main(["exec", "--name", "nowhere", "--"]) == 1
    assert "name the command to run" in capsys.readouterr().err
    assert command_line.main(["down", "--name", "nowhere"]) == 0


def test_a_component_that_fails_is_named_with_the_end_of_its_log(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for program, text in {"etcd": "exec sleep 60", "kube-apiserver": "echo no such luck >&2; exit 3"}.items():
        (tmp_path / program).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / program).chmod(0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    cluster = Cluster(name=name)
    with pytest.raises(LocalProcessError, match=r"kube-apiserver ended with 3; the end of its log:\n  no such luck"):
        cluster.start()
    eventually(lambda: not processes_of(cluster))
    assert not cluster.state.exists()


SHARED = """
import pytest
from devcluster.cluster import Cluster

@pytest.mark.parametrize("number", range(4))
def test_it(cluster: Cluster, namespace: str, worker_id: str, number: int) -> None:
    with open("seen", "a") as file:
        file.write(f"{worker_id} {cluster.state} {namespace}\\n")
"""


@pytest.mark.parametrize("end", ["done", "killed"])
def test_parallel_workers_share_one_cluster_that_ends_with_the_run(end: str, tmp_path: Path) -> None:
    hang = "\n\ndef test_hang(cluster: Cluster) -> None:\n    __import__('time').sleep(600)\n"
    (tmp_path / "test_shared.py").write_text(SHARED + (hang if end == "killed" else ""))
    command = [sys.executable, "-m", "pytest", "-q", "-n2", "-p", "devcluster.testing.pytest_plugin", "-c", "/dev/null"]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    for inherited in [variable for variable in environment if variable.startswith("PYTEST_")]:
        del environment[inherited]
    seen = tmp_path / "seen"
    with subprocess.Popen(
        [*command, f"--rootdir={tmp_path}", "test_shared.py"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as run:
        if end == "killed":
            eventually(lambda: seen.exists() and len(seen.read_text().splitlines()) == 4, seconds=200)
            run.kill()
        output, _ = run.communicate(timeout=240)
        assert run.returncode == (0 if end == "done" else -signal.SIGKILL), output
    lines = [line.split() for line in seen.read_text().splitlines()]
    workers, states, namespaces = (set(column) for column in zip(*lines, strict=True))
    assert workers == {"gw0", "gw1"}
    assert len(states) == 1
    assert len(namespaces) == 4
    eventually(lambda: not any(Path(state).exists() for state in states))
