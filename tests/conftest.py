"""What all tests share: real clusters, and which tests stay together when several processes run them."""

import signal
from typing import Any

import hypothesis
import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

pytest_plugins = ["devcluster.pytest_plugin"]

_TOGETHER = (
    "tests/conformance/",
    "tests/cluster/test_webhooks_end_to_end",
    "tests/cluster/test_manifests",
    "tests/faults/test_crash_points_of_a_cluster",
)
"""Files here have a fixture of the module that is much work, a cluster of their own, and must not be in every process."""

# On a busy machine an example may take any time, and so may making it.
hypothesis.settings.register_profile("patient", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("patient")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Started in the background of a shell: what tests start would ignore Ctrl-C, too.
    signal.signal(signal.SIGINT, signal.default_int_handler)


class _FilesTogether(LoadScopeScheduling):  # type: ignore[misc] # xdist tells no types here
    """Tests one by one to whichever process is free, but some files as a whole.

    The way of xdist itself, marks with `--dist loadgroup`, has no effect under pytest 9.2: a test's name is fixed there.
    """

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return path if path.startswith(_TOGETHER) else nodeid


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    return _FilesTogether(config, log)
