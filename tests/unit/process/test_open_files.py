"""Few files may be open, and clients hold many connections without a word."""

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from process.open_files import share

PROGRAM = """
import asyncio, os, resource, sys
from aiohttp import web
from process.logging import configure_logging
from process.runner import run_process
from process.server import HttpServer

soft, hard, held = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

async def answer(request):
    return web.Response(text="here")

class Begin:
    name = "begin"
    async def start(self):
        # What a program has open itself: connections to API servers.
        self.files = [os.open(os.devnull, os.O_RDONLY) for _ in range(held)]
        print(*(each.port for each in servers), resource.getrlimit(resource.RLIMIT_NOFILE)[0], flush=True)
    async def wait(self): pass
    async def stop(self): pass

servers = [HttpServer(name, answer, host="127.0.0.1") for name in ("probes", "metrics")]

async def compose():
    return [servers, [Begin()]]

configure_logging()
run_process(compose)
"""


@contextlib.contextmanager
def started(*, soft: int, hard: int, held: int = 0) -> Iterator[list[int]]:
    """Two servers; the last number is the limit that they see."""
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *map(str, (soft, hard, held))], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        assert program.stdout is not None
        yield [int(word) for word in program.stdout.readline().split()]
    finally:
        program.kill()
        print(program.communicate()[1].decode())  # pytest shows it with a failed test


def answered(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=20) as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        return client.recv(4096).startswith(b"HTTP/1.1 200")
    return False


@pytest.mark.parametrize("held", [0, 30])
def test_probes_are_answered_however_many_connections_are_idle(held: int) -> None:
    with started(soft=64, hard=64, held=held) as (probes, metrics, _), contextlib.ExitStack() as idle:
        for _ in range(160):
            for port in (probes, metrics):
                idle.enter_context(socket.create_connection(("127.0.0.1", port)))
        began = time.monotonic()
        assert [answered(port) for port in (probes, metrics, probes)] == [True] * 3
        assert time.monotonic() - began < 20


def test_a_server_answers_when_the_process_has_no_file_left() -> None:
    # The listeners, the event loop and Python have less than ten; the program takes all others but a few.
    with started(soft=64, hard=64, held=46) as (probes, _, _), contextlib.ExitStack() as idle:
        for _ in range(40):
            idle.enter_context(socket.create_connection(("127.0.0.1", probes)))
        assert answered(probes)


def test_the_soft_limit_is_raised_to_the_hard_one() -> None:
    with started(soft=64, hard=512) as (_, _, limit):
        assert limit == 512


@pytest.mark.parametrize(("limit", "connections"), [(16, 4), (64, 6), (1024, 102), (10_240, 1024), (1 << 20, 1024)])
def test_connections_of_one_server_are_a_small_part_of_the_limit(limit: int, connections: int) -> None:
    assert share(1024, limit=limit) == connections
