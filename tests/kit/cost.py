"""What a run of the tests costs in seconds of CPU, printed at its very end.

Of all processes: those of pytest, what tests start, and the control planes. These outlive the test that started them,
and are no children of pytest: their supervisors write down what they took when they end. Not counted is what a test
kills together with the process that would have waited for it.
"""

import os
import resource
import tempfile
from pathlib import Path

import pytest

from localprocesses.supervisor import CPU_FILE

_FILE = pytest.StashKey[Path]()


def pytest_configure(config: pytest.Config) -> None:
    if CPU_FILE in os.environ:
        return  # A process of pytest-xdist, or a run that a test starts: counted by the run that started it.
    descriptor, name = tempfile.mkstemp(prefix="cpu-")
    os.close(descriptor)
    config.stash[_FILE] = Path(name)
    os.environ[CPU_FILE] = name


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """By now the control planes have ended, and all processes of pytest-xdist."""
    file = config.stash.get(_FILE, None)
    if file is None:
        return
    del os.environ[CPU_FILE]
    clusters = [float(line) for line in file.read_text().split()]
    file.unlink()
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    tests = sum(usage.ru_utime + usage.ru_stime for usage in usages)
    config.get_terminal_writer().line(
        f"CPU: {tests + sum(clusters):.0f} s: {tests:.0f} s of tests and programs, "
        f"{sum(clusters):.0f} s of {len(clusters)} control planes"
    )
