"""A real process with real signals: exit codes and what is printed."""

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

PROGRAM = """
import asyncio, sys, time
from process.logging import configure_logging
from process.runner import run_process

class Part:
    name = "part"
    async def start(self):
        if sys.argv[1] == "fail":
            raise OSError("cannot start")
        print("ready", flush=True)
    async def wait(self):
        await asyncio.Event().wait()
    async def stop(self):
        print("stopping", flush=True)
        if sys.argv[1] == "hang":
            await asyncio.Event().wait()
        while sys.argv[1] == "block":
            time.sleep(0.1)  # what comes just before it is noticed after it

async def compose():
    return [[Part()]]

configure_logging()
run_process(compose, grace_period=float(sys.argv[2]))
"""


@contextlib.contextmanager
def started(behaviour: str, *, grace_period: float = 30.0) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", PROGRAM, behaviour, str(grace_period)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    output, _ = process.communicate(timeout=60)
    return process.returncode, output


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_process_cleanly_and_silently(number: signal.Signals) -> None:
    with started("obey") as process:
        assert line_of(process) == "ready\n"
        process.send_signal(number)
        assert finish(process) == (0, "stopping\n")


@pytest.mark.parametrize("behaviour", ["hang", "block"])
def test_a_second_signal_ends_the_process_at_once_even_if_its_event_loop_is_stuck(behaviour: str) -> None:
    with started(behaviour) as process:
        assert line_of(process) == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert line_of(process) == "stopping\n"
        process.send_signal(signal.SIGTERM)
        assert finish(process) == (1, "")


def test_exceeding_the_grace_period_is_an_error_that_is_reported() -> None:
    late = "failed waiting for all runnables to end within grace period of 100ms: context deadline exceeded"
    with started("hang", grace_period=0.1) as process:
        assert line_of(process) == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert finish(process) == (1, f"stopping\n{late}\n")


def test_an_error_of_the_start_is_printed_and_ends_the_process() -> None:
    with started("fail") as process:
        assert finish(process) == (1, "stopping\ncannot start\n")
