"""What all tests share: real clusters, and which tests stay together when several processes run them."""

import ast
import functools
import gc
import os
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import structlog
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

from devcluster.cluster import Cluster
from kit.managed_resources import release
from kit.rig import OWN_CLASS

pytest_plugins = ["devcluster.testing.pytest_plugin", "kit.cost", "kit.fixtures", "kit.garden"]

# On a busy machine an example may take any time, and so may making it. Two runs of the same tests do the same: what
# searches at random are the fuzzers and the campaign.
hypothesis.settings.register_profile(
    "patient", deadline=None, derandomize=True, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("patient")

# Control planes take a quarter less CPU, and more memory, up to a limit that is set below: they are young, and most
# garbage is of their start.
os.environ.setdefault("GOGC", "800")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Started in the background of a shell: what tests start would ignore Ctrl-C, too.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Thousands of tests that all stay: looking for garbage among them, now or later, takes a third of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Control planes, built by now with all processors, run on one each: with two they take a tenth more CPU.

    From 1 GiB on, one collects garbage more often than GOGC says. Not while they are built: the linker needs more.
    """
    os.environ.setdefault("GOMAXPROCS", "1")
    os.environ.setdefault("GOMEMLIMIT", "1GiB")


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """Programs that a test runs in its own process configure logging for all of it."""
    yield
    structlog.reset_defaults()


@pytest.fixture
def namespace(namespace: str, cluster: Cluster) -> Iterator[str]:
    """What is left in it when the test has ended is not managed any more."""
    yield namespace
    release(cluster, namespace, living=OWN_CLASS)


class _FilesTogether(LoadScopeScheduling):  # type: ignore[misc] # xdist has no types here
    """Tests one by one to whichever process is free, but a file that has a fixture of the module as a whole.

    Such a fixture is much work, often a control plane of its own, which every process would do that has one of the tests.

    The way of xdist itself, marks with `--dist loadgroup`, has no effect under pytest 9.2: a test's name is fixed there.
    """

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        if Path(path).name.startswith("test_garden_"):
            return "garden"  # all of them share one control plane
        if path.endswith("_of_a_garden.py"):
            return "garden of one test at a time"
        return path if _has_fixture_of_module(Path(self.config.rootpath, path)) else nodeid

    def _pending_of(self, workload: dict[str, dict[str, bool]]) -> int:
        """Forgets what is done: xdist would count all of it again after each of thousands of tests."""
        for scope in [scope for scope, tests in workload.items() if all(tests.values())]:
            del workload[scope]
        return sum(not done for tests in workload.values() for done in tests.values())


@functools.cache
def _has_fixture_of_module(path: Path) -> bool:
    """From its text: the process that distributes the tests imports none."""
    functions = (
        node for node in ast.parse(path.read_bytes()).body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    decorators = (call for function in functions for call in function.decorator_list if isinstance(call, ast.Call))
    return any(ast.unparse(keyword) == "scope='module'" for call in decorators for keyword in call.keywords)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    return _FilesTogether(config, log)


def pytest_sessionfinish() -> None:
    """Save what was measured here, if it is: pytest-xdist kills its processes when they take long to end."""
    coverage = sys.modules.get("coverage")
    if coverage is not None and (measured := coverage.Coverage.current()) is not None:
        measured.save()
