"""Processes of the local provider: when they end."""

import asyncio
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest

from kit.eventually import soon
from kube.objects import Key
from localprocesses import landlock, supervisor
from localprocesses.local import HOST
from localprovider.runner.addresses import Here
from localprovider.runner.places import Places
from localprovider.runner.pods import Pod, Pods, Standing
from localprovider.runner.probes import Probe
from localprovider.runner.processes import Processes

NAMESPACE, NAME = "shoot--dev--rose", "kube-controller-manager"
SECONDS = 60.0


@pytest.fixture
async def pods(tmp_path: Path) -> AsyncIterator[Pods]:
    # Longer than the path of a socket may be: providers of Shoots that are seeds are below others.
    processes = Processes(tmp_path / ("long" * 30) / "run", now=time.monotonic)
    await processes.begin()
    async with aiohttp.ClientSession() as session:
        yield Pods(Places(tmp_path / "shoots"), processes, session)
    await processes.end()


def pod(pods: Pods, *command: str) -> Pod:
    here = Here(pods.places.of_pod(NAMESPACE, NAME) / "root", (), NAMESPACE, {})
    return Pod(namespace=NAMESPACE, name=NAME, here=here, command=command, files=[])


async def test_the_end_of_a_process_is_reported_at_once(pods: Pods) -> None:
    """Each time, also of one that was taken up; but once for each."""
    ended = asyncio.Queue[Key]()
    pods = replace(pods, ended=ended.put_nowait)
    sleeps, status = pod(pods, "sleep", "600"), pods.processes.directory
    for _ in range(2):
        for _ in range(2):
            await pods.run(sleeps)
        (component,) = supervisor.ask(status, "status")["components"].values()
        os.kill(component["pid"], signal.SIGKILL)
        assert await asyncio.wait_for(ended.get(), SECONDS) == Key(NAMESPACE, NAME)
        pods.processes.forget(sleeps.process)
        # The supervisor hears of it at its own time.
        await soon(lambda: _is_over(status), "the supervisor to see it")
    assert ended.empty()


async def test_after_its_end_another_can_begin_in_the_same_place_at_once(pods: Pods) -> None:
    for _ in range(2):
        await pods.processes.end()
        await pods.processes.begin()
        pods.processes.forget(sleeps := pod(pods, "sleep", "600").process)
        assert await pods.processes.start(sleeps, ["sleep", "600"]) == 0
        assert await pods.processes.running() == {sleeps: True}


def _is_over(status: Path) -> bool:
    (component,) = supervisor.ask(status, "status")["components"].values()
    return component["exit"] is not None


async def test_a_port_that_others_have_is_noticed(pods: Pods) -> None:
    fails, found = (
        pod(pods, "sh", "-c", "echo 'listen tcp: bind: address already in use' >&2; exit 1"),
        list[Standing](),
    )

    async def lacks_port() -> bool:
        found.append(await pods.run(fails))
        return found[-1].lacks_port

    async with asyncio.timeout(SECONDS):
        while not await lacks_port():
            await asyncio.sleep(found[-1].wait)
    assert "is started again" in found[-1].problem


async def test_the_error_of_a_process_stays_until_another_one_is_ready(pods: Pods) -> None:
    """It is reported as soon as it ends, and not replaced by what another one reports that runs for a while."""
    fails, found = pod(pods, "sh", "-c", "echo 'Error: unknown api groups foo/v1' >&2; sleep 1.5; exit 1"), list[str]()
    fails = replace(fails, probe=Probe("http://127.0.0.1:1/"))
    async with asyncio.timeout(SECONDS):
        while len(found) < 4:
            found.append((await pods.run(fails)).problem)
            await soon(lambda: _is_over(pods.processes.directory), "the process to end")
            found.append((await pods.run(fails)).problem)
    error = "its process has ended and is started again: unknown api groups foo/v1"
    assert found == ["its process was started just now", error, error, error]
    corrected = pod(pods, "sleep", "600")
    assert (await pods.run(corrected)).problem == "its process was started just now"
    assert (await pods.run(corrected)).problem == ""


def test_who_has_lost_a_port_gets_another_one(tmp_path: Path) -> None:
    places = Places(tmp_path)
    kept, lost = (places.port(NAMESPACE, each) for each in ("kube-apiserver", NAME))
    with socket.create_server((HOST, lost)):
        places.forget_ports(NAMESPACE, NAME)
        assert places.ports(NAMESPACE) == {"kube-apiserver": kept}
        assert places.port(NAMESPACE, NAME) not in {kept, lost}


@pytest.mark.skipif(not landlock.is_enforced(), reason="this kernel has no Landlock")
async def test_a_process_uses_no_files_but_its_own(pods: Pods, tmp_path: Path) -> None:
    """Neither it nor what it starts: the other program is not even run."""
    foreign = tmp_path / "foreign"
    foreign.write_text("secret")
    script = f'echo own > "$TMPDIR/own"; cat {foreign}; echo > {tmp_path}/new; rm {foreign}; touch "$TMPDIR/other"'
    await pods.run(pod(pods, "sh", "-c", script))
    own = pods.places.of_pod(NAMESPACE, NAME) / "root/tmp"
    await soon(lambda: _is_over(pods.processes.directory), "the process to end")
    assert [each.name for each in own.iterdir()] == ["own"]
    assert foreign.read_text() == "secret"
    assert not (tmp_path / "new").exists()
    log = pods.processes.log(f"{NAMESPACE}.{NAME}").read_text()
    assert "secret" not in log
    assert log.count("ermission denied") >= 3


async def test_a_process_gets_variables_of_its_container_and_none_of_this_program(
    pods: Pods, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", "of-the-user")
    plain = pod(pods, "sh", "-c", "set")
    given = replace(plain, environment={"GOGC": "50", "TMPDIR": "/elsewhere"})
    assert given.digest != plain.digest
    await pods.run(given)
    await soon(lambda: _is_over(pods.processes.directory), "the process to end")
    log = pods.processes.log(f"{NAMESPACE}.{NAME}").read_text()
    assert "GOGC='50'" in log
    assert "of-the-user" not in log
    assert "/elsewhere" not in log


async def test_a_log_is_cut(pods: Pods) -> None:
    """A process goes on to write, and the end of what it has written stays."""
    size = supervisor.LARGEST_LOG + 1
    script = f"import time; print('.' * {size}, flush=True)\nwhile True: print('more', flush=True); time.sleep(0.1)"
    await pods.run(pod(pods, sys.executable, "-c", script))
    log = pods.processes.log(f"{NAMESPACE}.{NAME}")

    def is_cut() -> bool:
        return log.exists() and 0 < log.stat().st_size < size and log.with_suffix(".old.log").exists()

    await soon(is_cut, "the log to be cut")
    assert log.read_bytes().startswith(b"more\n")
