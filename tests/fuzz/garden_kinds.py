"""`python -m tests.fuzz.garden_kinds --seconds N [KIND...]`: the target `garden_objects`, so long for each of the kinds.

The kinds have their turns in one process, so that a run that is ended early has been fair to all; seconds are of CPU.
It needs nothing that is not installed and is not guided by coverage. A defect is printed with its input, which belongs
into the corpus of the target once it is mended, and the run goes on.
"""

import argparse
import logging
import os
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

_TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_TESTS.parent), str(_TESTS)]

import structlog  # noqa: E402 - only now the rest can be found

from fuzz import garden_objects  # noqa: E402
from webhooks.garden.registry import KINDS  # noqa: E402

_TURN_SECONDS = 2.0
_LENGTHS = (2, 8, 24, 64, 200)
_NAMES = [kind.resource.kind for kind in KINDS]


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="tests.fuzz.garden_kinds", description="Fuzzes the kinds of the garden API.")
    made.add_argument("--seconds", type=float, required=True, help="of CPU, for each kind")
    made.add_argument("kinds", nargs="*", metavar="KIND", help="all, if none is named")
    return made


def main(arguments: Sequence[str]) -> int:
    parsed = parser().parse_args(arguments)
    if unknown := set(parsed.kinds) - set(_NAMES):
        parser().error(f"no such kind: {', '.join(sorted(unknown))}; there are {', '.join(_NAMES)}")
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    return 1 if fuzz(parsed.kinds or _NAMES, parsed.seconds) else 0


def fuzz(kinds: Sequence[str], seconds: float) -> set[str]:
    """The places of all defects."""
    seed = int.from_bytes(os.urandom(4), "big")
    print(f"seed {seed}", flush=True)
    chance = random.Random(seed)
    spent, inputs = Counter[str](), Counter[str]()
    defects: set[str] = set()
    while left := [kind for kind in kinds if spent[kind] < seconds]:
        for kind in left:
            began = time.process_time()
            while (now := time.process_time() - began) < _TURN_SECONDS:
                inputs[kind] += 1
                _play(kind, chance.randbytes(chance.choice(_LENGTHS)), defects)
            spent[kind] += round(now)
        print(", ".join(f"{kind} {spent[kind]} s {inputs[kind]} inputs" for kind in kinds), flush=True)
    return defects


def _play(kind: str, choices: bytes, defects: set[str]) -> None:
    data = bytes([_NAMES.index(kind)]) + choices
    try:
        garden_objects.target(data)
    except Exception as error:  # noqa: BLE001 - that is what is looked for
        innermost = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{kind}: {type(error).__name__} at {innermost.filename}:{innermost.lineno}"
        if place not in defects:
            defects.add(place)
            print(f"{place}\ninput {data.hex()}\n{''.join(traceback.format_exception(error))}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
