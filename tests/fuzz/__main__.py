"""`python -m tests.fuzz TARGET SECONDS [DIRECTORY]`: see `fuzz.driver`. Needs what is in requirements-fuzz.txt.

What is new to the kept corpus goes to the directory, if one is named. The first defect ends the run; its input is left
in a file `crash-…`, which belongs into the corpus once the defect is mended.
"""

import logging
import sys
import tempfile
from pathlib import Path

_TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_TESTS.parent), str(_TESTS)]

from fuzz import driver  # noqa: E402 - only now it can be found


def main(arguments: list[str]) -> int:
    if len(arguments) not in (2, 3) or arguments[0] not in driver.names():
        print(f"{(__doc__ or '').strip()}\n\nTargets: {', '.join(driver.names())}", file=sys.stderr)
        return 2
    import atheris
    import structlog

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    name, seconds, *directory = arguments
    with atheris.instrument_imports(include=["agent", "gardener", "kube", "webhooks", "config", "yaml"]):
        target = driver.load(name)
    with tempfile.TemporaryDirectory() as made, tempfile.TemporaryDirectory() as new:
        for number, seed in enumerate(target.made):
            (Path(made) / str(number)).write_bytes(seed)
        limits = [f"-max_total_time={seconds}", "-max_len=8192", "-timeout=30", "-rss_limit_mb=4096"]
        corpora = [*(directory or [new]), str(driver.CORPORA / name), made]
        atheris.Setup([sys.argv[0], *limits, *corpora], target.run)
        atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
