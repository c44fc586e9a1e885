"""Processes of the local provider: when they end."""

import asyncio
import os
import signal
import socket
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest

from kit.eventually import soon
from kube.objects import Key
from localprocesses import supervisor
from localprocesses.local import HOST
from localprovider.runner.addresses import Here
from localprovider.runner.places import Places
from localprovider.runner.pods import Pod, Pods, Standing
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


def test_who_has_lost_a_port_gets_another_one(tmp_path: Path) -> None:
    places = Places(tmp_path)
    kept, lost = (places.port(NAMESPACE, each) for each in ("kube-apiserver", NAME))
    with socket.create_server((HOST, lost)):
        places.forget_ports(NAMESPACE, NAME)
        assert places.ports(NAMESPACE) == {"kube-apiserver": kept}
        assert places.port(NAMESPACE, NAME) not in {kept, lost}
