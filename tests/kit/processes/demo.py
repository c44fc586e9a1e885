"""The demo as a process, for tests.

with RunningDemo(name) as demo:
demo.read_until("Ctrl-C")
...  # everything is up
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Self

from devcluster.cluster import Cluster
from devcluster.processes import running_in
from kit.eventually import eventually

PROJECT = Path(__file__).resolve().parents[3]


class RunningDemo:
    """A demo in a process of its own; all that it reports comes through one pipe."""

    def __init__(self, name: str, *arguments: str) -> None:
        self.cluster = Cluster(name=name, owner=0)
        self.text = ""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "devcluster", "demo", "--name", name, *arguments],
            cwd=PROJECT,
            env={**os.environ, "NO_COLOR": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self.process:
            if self.process.poll() is None:
                self.process.terminate()

    def read_until(self, text: str) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.text += line
            if text in line:
                return
        raise AssertionError(f"the demo ended without having said {text!r}:\n{self.text}")

    def end(self) -> int:
        """Its exit code, once it has reported everything."""
        assert self.process.stdout is not None
        self.text += self.process.stdout.read()
        return self.process.wait(60)

    def left_processes(self) -> list[str]:
        return [" ".join(each) for each in running_in(self.cluster.state).values()]

    def assert_nothing_is_left(self) -> None:
        """The supervisor ends a moment after it has reported that all else has ended."""
        eventually(lambda: not self.left_processes(), "all processes to end", state=self.left_processes)
        assert not self.cluster.state.exists()
