"""Each command in docs/first-managed-resource.md does what the page shows, from its top to its bottom.

A line `…` on the page stands for any lines. What only reads is repeated until the agent has done its part.
"""

import contextlib
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.eventually import eventually

pytestmark = [pytest.mark.usefixtures("devcluster_run"), pytest.mark.timeout(600)]

PROJECT = Path(__file__).parents[2]
PAGE = (PROJECT / "docs" / "first-managed-resource.md").read_text()
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
_READS = re.compile(r"kubectl (-n \S+ )?get |\.venv/bin/kubectl-mr ")
_VOLATILE = ((re.compile(r"\b\d+[sm]\b"), "AGE"), (re.compile(r"hello-[a-z0-9]{6,10}(-[a-z0-9]{5})?"), "hello-HASH"))


def stable(text: str) -> str:
    for pattern, replacement in _VOLATILE:
        text = pattern.sub(replacement, text)
    return "\n".join(re.sub(r" +", " ", line).rstrip() for line in text.strip().splitlines())


def is_shown(shown: str, printed: str) -> bool:
    """Whether the page shows what was printed."""
    parts = re.split(r"^…\n", f"{stable(shown)}\n", flags=re.MULTILINE)
    return re.fullmatch(r"(?:.*\n)*".join(map(re.escape, parts)), f"{stable(printed)}\n") is not None


class Shell:
    """The terminal of a user who follows the page, in a directory of its own that looks like a checkout."""

    def __init__(self, checkout: Path, temporary: str) -> None:
        self.checkout = checkout
        for name in (".venv", "manifests"):
            (checkout / name).symlink_to(PROJECT / name)
        # Clusters are in the temporary directory: that of the page meets no other of its name.
        self._environment = {**os.environ, "PYTHONPATH": str(PROJECT), "TMPDIR": temporary, "NO_COLOR": "1"}

    def run(self, command: str) -> str:
        """What is printed; later commands see the variables that it exports."""
        kept = self.checkout / "environment"
        done = subprocess.run(
            ["bash", "-c", f"{command}\nstatus=$?; env -0 > {kept}; exit $status"],
            cwd=self.checkout,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}"
        self._environment = dict(line.split("=", 1) for line in kept.read_text().split("\0") if line)
        return done.stdout

    @contextlib.contextmanager
    def running(self, command: str) -> Iterator[None]:
        ports = [f"--{name}-bind-address=127.0.0.1:0" for name in ("metrics", "health-probe")]
        with subprocess.Popen([*command.split(), *ports], cwd=self.checkout, env=self._environment) as process:
            try:
                yield
            finally:
                process.send_signal(signal.SIGINT)
                process.wait(60)


def follow(shell: Shell, terminals: contextlib.ExitStack) -> None:
    for language, body in _BLOCK.findall(PAGE):
        if language == "yaml":
            (shell.checkout / body.split()[1]).write_text(body)
        elif not body.startswith("$ "):
            for command in body.splitlines():
                if "-m agent" in command:
                    terminals.enter_context(shell.running(command))
                elif command != "make runtime":
                    shell.run(command)
        for command, shown in _COMMAND.findall(body):
            expect(shell, command, shown)


def expect(shell: Shell, command: str, shown: str) -> None:
    printed = ""

    def is_as_shown() -> bool:
        nonlocal printed
        printed = shell.run(command)
        return is_shown(shown, printed)

    seconds = 60 if _READS.match(command) else 0
    eventually(is_as_shown, f"{command} to print\n{shown}", seconds=seconds, state=lambda: printed)


def test_the_page_shows_what_happens(tmp_path: Path) -> None:
    # Paths of sockets in it have to be short.
    with tempfile.TemporaryDirectory() as temporary, contextlib.ExitStack() as terminals:
        shell = Shell(tmp_path, temporary)
        terminals.callback(shell.run, ".venv/bin/python -m devcluster down --name first || true")
        follow(shell, terminals)
