"""A shortened run of the fault campaign: after the faults all is as users want it, and no user was harmed.

`CAMPAIGN_SEED=7` in the environment chooses another plan. Longer runs: `python -m tests.campaign --minutes 10`.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from campaign.command import quick_plan
from campaign.plan import LANES
from campaign.report import Report
from campaign.run import Limits, load_now, patience_now, run

pytestmark = pytest.mark.timeout(600)

SEED = int(os.environ.get("CAMPAIGN_SEED", "20"))


async def test_after_random_work_and_random_faults_all_is_as_users_want_it(devcluster_run: object) -> None:
    plan, rest = quick_plan(SEED)
    report = Report(plan, load_now())
    try:
        await run(plan, Limits(rest=rest, patience=patience_now()), report=report)
    finally:
        print(report.text())
    assert report.is_good, report.text()
    # How many more there are depends on how long healing takes.
    assert {each.strike.lane for each in report.injected} == LANES.keys(), "some sorts of faults are missing"
    assert report.admissions > 0
    assert report.writes > 0


HANGS = """
import subprocess, sys, threading, time
sys.path.insert(0, "tests")
from campaign.command import end_after, quick_plan
from campaign.report import Report
child = subprocess.Popen(["sleep", "1000"])
print(child.pid, flush=True)
end_after(1.0, Report(quick_plan(7)[0], 0.0), None)
time.sleep(1000)
"""


def test_a_run_that_hangs_ends_by_itself_with_all_that_it_has_started() -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", HANGS]
    hanging = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=120, check=False)
    assert hanging.returncode == 2
    assert "something hangs" in hanging.stderr
    pid, _, reported = hanging.stdout.partition("\n")
    assert reported.startswith("seed 7: "), "what is known by then is reported"
    deadline = time.monotonic() + 60
    while _runs(int(pid)):  # who is killed closes its files a moment before it ends
        assert time.monotonic() < deadline, "what it has started goes on"
        time.sleep(0.05)


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
