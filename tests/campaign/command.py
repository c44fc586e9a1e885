"""The command line: bounded in time, and it leaves nothing behind."""

import argparse
import asyncio
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from random import SystemRandom

from campaign.plan import Plan, make_plan
from campaign.report import Report
from campaign.run import Limits, load_now, patience_now, run
from kube.errors import KubeError
from localprocesses.local import LocalProcessError

_QUICK_SECONDS, _QUICK_HASTE, _QUICK_REST = 15.0, 2.0, 6.0
_AROUND = 210.0
"""Seconds for everything but the faults, on an idle machine; what is longer than that comes on top."""
_REST = 60.0
_GRACE_SECONDS = 60.0
_EXAMPLES = """\
examples:
  python -m tests.campaign --minutes 10            a run with a seed of its own, which it prints
  python -m tests.campaign --minutes 10 --seed 7   the plan of seed 7 once more
  python -m tests.campaign --quick                 a minute or two, for trying out
"""


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m tests.campaign",
        description="Random work and random faults for agents and webhooks in two clusters; then compares the results.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--minutes", type=float, default=10.0, help="how long a run may take (default: 10, at least 5)")
    made.add_argument("--seed", type=int, help="what the plan is made from (default: a random number)")
    made.add_argument("--quick", action="store_true", help="few faults and a short rest")
    made.add_argument("--report", type=Path, metavar="FILE", help="write everything there, as JSON")
    made.add_argument("--plan", action="store_true", help="only print the plan, as JSON")
    return made


def plan_for(seed: int, *, minutes: float, quick: bool) -> tuple[Plan, float]:
    """And how many seconds to watch in steady state."""
    if quick:
        return quick_plan(seed)
    return make_plan(seed, seconds=max(minutes * 60 - _AROUND, 60.0)), _REST


def quick_plan(seed: int) -> tuple[Plan, float]:
    return make_plan(seed, seconds=_QUICK_SECONDS, haste=_QUICK_HASTE), _QUICK_REST


def main(arguments: Sequence[str]) -> int:
    options = parser().parse_args(arguments)
    seed = SystemRandom().randrange(1, 1_000_000) if options.seed is None else options.seed
    plan, rest = plan_for(seed, minutes=options.minutes, quick=options.quick)
    if options.plan:
        print(plan.text())
        return 0
    print(f"seed {seed}: {len(plan.steps)} steps, {len(plan.strikes)} strikes in {plan.seconds:.0f} s", flush=True)
    report = Report(plan, load_now())
    limits = Limits(rest=rest, patience=patience_now())
    whole = max(options.minutes * 60, 300.0) * limits.patience
    end_after(whole + _GRACE_SECONDS, report, options.report)
    error = _play(plan, limits, report, seconds=whole)
    _print_report(report, options.report)
    if error:
        print(f"error: {error}", file=sys.stderr)
    return 0 if report.is_good and not error else 1


def _play(plan: Plan, limits: Limits, report: Report, *, seconds: float) -> str:
    """Why it did not come to its end, if so."""

    async def bounded() -> None:
        async with asyncio.timeout(seconds):
            await run(plan, limits, report=report)

    try:
        asyncio.run(bounded())
    except KeyboardInterrupt:
        return "interrupted"
    except TimeoutError:
        return f"it did not end within {seconds:.0f} s"
    except (LocalProcessError, KubeError, OSError, AssertionError, ExceptionGroup) as error:
        return repr(error)
    return ""


def end_after(seconds: float, report: Report, file: Path | None) -> None:
    """Whatever hangs: then all of it ends. Clusters and processes end with this process."""

    def end() -> None:
        time.sleep(seconds)
        _print_report(report, file)
        print(f"error: something hangs; ended after {seconds:.0f} s", file=sys.stderr, flush=True)
        _end_children()
        os._exit(2)

    threading.Thread(target=end, daemon=True).start()


def _end_children() -> None:
    """The processes that this one has started; clusters notice by themselves."""
    for children in Path(f"/proc/{os.getpid()}/task").glob("*/children"):
        for pid in children.read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)


def _print_report(report: Report, file: Path | None) -> None:
    print(report.text(), flush=True)
    if file is not None:
        file.write_text(report.json())
