"""The tests under faults, which only say yes or no, at the size that they are too slow for in a test run."""

import asyncio
import os
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

from benchmarks.report import Table
from devcluster.errors import DevclusterError

_TESTS = Path(__file__).parents[1] / "tests/faults/test_managed_resources_under_faults.py"
_SECONDS = 3600.0


async def measure(*, count: int, size: int) -> Table:
    """How long it took under each fault until creation, change and deletion had come true."""
    with tempfile.TemporaryDirectory() as directory:
        results = Path(directory) / "results.xml"
        command = [sys.executable, "-m", "pytest", "-q", f"--junit-xml={results}", "--timeout=600", str(_TESTS)]
        environment = {**os.environ, "UNDER_FAULTS": f"{count}x{size}"}
        process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=asyncio.subprocess.DEVNULL)
        try:
            async with asyncio.timeout(_SECONDS):
                await process.wait()
        finally:
            if process.returncode is None:
                process.terminate()
                await process.wait()
        if not results.exists():
            raise DevclusterError(f"pytest ended with {process.returncode} and without results")
        cases = list(ET.parse(results).getroot().iter("testcase"))  # noqa: S314 - our own file
    rows = [(_name(case), _outcome(case)) for case in cases]
    note = "Seconds until creation, change and deletion were complete. Nothing foreign was changed, nothing was left."
    return Table(f"{count} ManagedResources of {size} objects under faults", ("fault", "s"), rows, [note])


def _name(case: ET.Element) -> str:
    return case.get("name", "").partition("[")[2].rstrip("]")


def _outcome(case: ET.Element) -> str:
    failed = case.find("failure") is not None or case.find("error") is not None
    return "FAILED" if failed else f"{float(case.get('time', '0')):.0f}"
