"""Evaluate expressions, one request per line, until the input ends: `python -m ... BYTES`; see `evaluation`.

A request is a list of the expressions by name and the fields of the object. The answer is the name of the first true
expression, or null, or an object with an error.
"""

import resource
import signal
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson

from gardener.health.checks.expressions import LONGEST_SECONDS, Expression, first_true
from gardener.health.checks.rule import CheckError


@lru_cache(100)
def _compiled(text: str) -> Expression:
    return Expression(text)


def _answer(texts: dict[str, str], variables: dict[str, Any]) -> object:
    expressions = {name: _compiled(text) for name, text in texts.items()}
    signal.setitimer(signal.ITIMER_PROF, LONGEST_SECONDS)  # the signal has no handler, so it ends the process
    try:
        return first_true(expressions, variables)
    except CheckError as error:
        return {"error": str(error)}
    except MemoryError:
        return {"error": "it used too much memory", "costly": True}
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def main() -> None:
    _compiled("true")  # loads the library
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else 0
    if pages:
        limit = pages * resource.getpagesize() + int(sys.argv[1])
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    output = sys.stdout.buffer
    output.write(b"ready\n")
    output.flush()
    for line in sys.stdin.buffer:
        output.write(orjson.dumps(_answer(*orjson.loads(line))) + b"\n")
        output.flush()


if __name__ == "__main__":
    main()
