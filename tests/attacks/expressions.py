"""Ordinary expressions about objects of 64 KiB that make them cost as much as they can, and then about a small object.

python -m tests.attacks.expressions
"""

import resource
import sys
import time
from collections.abc import Mapping
from typing import Any

from agent.resource_manager.health.evaluation import Evaluator
from gardener.health.checks.expressions import Expression
from gardener.health.checks.rule import CheckError

_TEXT = "a" * 40_000
_ITEMS = [f"i{number}" for number in range(1000)]
EXPRESSIONS = (
    "status.text.split('a').join('bb').size() > 3",
    "status.text.replace('a', status.text).size() > 3",
    "status.items.all(i, status.text.split('a').size() != 3)",
    "status.items.all(i, status.text.replace('a', 'b') != i)",
    "status.items.all(i, status.text.lowerAscii() != i)",
    "status.items.all(i, !status.text.contains(i))",
)


def _fields(name: str, text: str, items: list[str]) -> dict[str, Any]:
    meta = {"namespace": "shop", "name": name}
    status = {"text": text, "items": items}
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": meta, "spec": {}, "status": status}


def _seconds(
    evaluator: Evaluator, expressions: Mapping[str, Expression], fields: Mapping[str, Any]
) -> tuple[float, str]:
    began = time.monotonic()
    try:
        answer = str(evaluator.first_true(expressions, fields))
    except CheckError as error:
        answer = str(error)
    return time.monotonic() - began, answer


def main() -> int:
    print(
        "| Expression | hostile object, s | answer | small object, s | peak of the child, MiB |\n|---|---|---|---|---|"
    )
    for text in EXPRESSIONS:
        evaluator, expressions = Evaluator(), {"current": Expression(text)}
        hostile, answer = _seconds(evaluator, expressions, _fields("hostile", _TEXT, _ITEMS))
        small, _ = _seconds(evaluator, expressions, _fields("small", "a", ["i"]))
        evaluator.close()
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
        print(f"| `{text}` | {hostile:.2f} | {answer[:60]} | {small:.2f} | {peak} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
