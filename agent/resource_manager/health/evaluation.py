"""Rules of the configuration in addition to the built-in ones, and the process that evaluates their expressions.

An invalid expression ends the start of the program. The data of an object determine the cost of an evaluation, so a
separate process evaluates expressions, and can be killed. The child starts with the first evaluation and ends with this
process. The kernel kills it if an evaluation takes too much processor time, and limits its memory; the next evaluation
starts another child.

A costly object is not evaluated for a while. If several objects of a namespace are costly, none of that namespace is
evaluated; if those of several namespaces are, the expression is to blame, and the rule is suspended.
"""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from select import select
from typing import Any

import orjson

from config.resource_manager.controllers import Health
from gardener.health.checks import expressions
from gardener.health.checks.expressions import (
    CURRENT,
    FAILED,
    IN_PROGRESS,
    LONGEST_SECONDS,
    Expression,
    InvalidExpression,
)
from gardener.health.checks.kstatus import is_custom
from gardener.health.checks.registry import Rules, has_rule
from gardener.health.checks.rule import CheckError, Rule
from kube.objects import Key, group_of
from kube.validation import FieldError, duplicate, forbidden, invalid
from process.configuration.errors import ConfigError

MODULE = "agent.resource_manager.health.evaluation_child"
MEMORY = 128 << 20
"""Bytes that the child may allocate beyond its initial memory."""
BLAMED_SECONDS = 600.0
MOST_OBJECTS = 3
"""Number of costly objects in a namespace from which on no others of it are evaluated."""
MOST_NAMESPACES = 5
_START_SECONDS, _ANSWER_SECONDS = 30.0, 5.0
_REMEMBERED = 1000


class Blame:
    """Costly objects of one rule.

    Args: now: monotonic seconds.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._costly: dict[Key, tuple[float, str]] = {}
        """Monotonic time until which an object is not evaluated, and the reason."""

    def check(self, key: Key) -> None:
        """Check that an object may be evaluated.

        Raises:
            CheckError: it may not, and the reason.
        """
        now = self._now()
        self._costly = {each: found for each, found in self._costly.items() if found[0] > now}
        if key in self._costly:
            raise CheckError(f"{self._costly[key][1]}; it is evaluated again after ten minutes; reduce the object")
        of_namespace = sum(each.namespace == key.namespace for each in self._costly)
        if of_namespace >= MOST_OBJECTS:
            raise CheckError(
                f"{of_namespace} objects of the namespace exceeded the limit; it is not evaluated for the others"
            )
        namespaces = {each.namespace for each in self._costly}
        if len(namespaces) >= MOST_NAMESPACES:
            raise CheckError(f"objects of {len(namespaces)} namespaces exceeded the limit; simplify the expression")

    def add(self, key: Key, why: str) -> None:
        if len(self._costly) < _REMEMBERED:
            self._costly[key] = self._now() + BLAMED_SECONDS, why


class Evaluator:
    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._blame: dict[tuple[str, str], Blame] = {}

    def first_true(self, expressions: Mapping[str, Expression], variables: Mapping[str, Any]) -> str | None:
        """Return the name of the first expression that is true; None if none is.

        Raises:
            CheckError: an evaluation failed or was too costly.
        """
        meta, api_version = variables["metadata"], str(variables["apiVersion"])
        key = Key(str(meta.get("namespace") or ""), str(meta.get("name") or ""))
        blame = self._blame.setdefault((api_version.partition("/")[0], str(variables["kind"])), Blame())
        blame.check(key)
        texts = {name: expression.text for name, expression in expressions.items()}
        try:
            answer = self._ask(orjson.dumps([texts, variables]))
        except _EndedError as error:
            blame.add(key, str(error))
            raise CheckError(str(error)) from None
        if isinstance(answer, dict):
            if answer.get("costly"):
                blame.add(key, answer["error"])
            raise CheckError(answer["error"])
        return str(answer) if answer is not None else None

    def close(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._end(self._child)

    def _ask(self, request: bytes) -> Any:
        child = self._child or self._start()
        assert child.stdin is not None
        try:
            child.stdin.write(request + b"\n")
            child.stdin.flush()
        except OSError:
            raise _EndedError(self._why(self._end(child))) from None
        return orjson.loads(self._line(child, _ANSWER_SECONDS))

    def _start(self) -> subprocess.Popen[bytes]:
        pipe, command = subprocess.PIPE, [sys.executable, "-m", MODULE, str(MEMORY)]
        child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, start_new_session=True)
        self._child = child
        try:
            self._line(child, _START_SECONDS)
        except _EndedError:
            # No object is to blame for this.
            raise CheckError("the process that evaluates expressions does not start") from None
        return child

    def _line(self, child: subprocess.Popen[bytes], seconds: float) -> bytes:
        assert child.stdout is not None
        if not select([child.stdout], [], [], seconds)[0]:
            child.kill()
        line = child.stdout.readline()
        if not line.endswith(b"\n"):
            raise _EndedError(self._why(self._end(child)))
        return line

    def _end(self, child: subprocess.Popen[bytes]) -> int:
        self._child = None
        with child:
            child.kill()
        return child.returncode

    @staticmethod
    def _why(code: int) -> str:
        if code in {-signal.SIGPROF, -signal.SIGKILL}:
            return f"it used more than {LONGEST_SECONDS} s of CPU"
        return f"it used more than {MEMORY >> 20} MiB of memory"


class _EndedError(Exception):
    """The child has ended; the text is the reason."""


# --- configured rules


_PATH = "controllers.health.healthCheckExprs"


def rules_of(settings: Health) -> Rules:
    """Return the built-in and configured rules.

    Raises:
        ConfigError: an expression or kind is invalid, or CEL is not installed.
    """
    configured: dict[tuple[str, str], Rule] = {}
    errors: list[FieldError] = []
    evaluator = Evaluator()
    try:
        for index, given in enumerate(settings.health_check_exprs):
            path, name = f"{_PATH}[{index}]", (group_of(given.api_version), given.kind)
            found = [*_kind_errors(path, *name)]
            compiled: dict[str, Expression] = {}
            if name in configured:
                found.append(duplicate(f"{path}.kind", f"{name[1]}.{name[0]}"))
            for field, text in ((IN_PROGRESS, given.in_progress), (FAILED, given.failed), (CURRENT, given.current)):
                try:
                    if text:
                        compiled[field] = Expression(text)
                except InvalidExpression as error:
                    found.append(invalid(f"{path}.{field}", text, f"of {given.kind}: {error}"))
            if not found:
                configured[name] = expressions.rule(*name, compiled, evaluate=evaluator.first_true)
            errors += found
    except ImportError as error:
        detail = (
            "the library for CEL is not installed: install the package with the extra `cel`, use an image that has it,"
            " or remove the expressions"
        )
        raise ConfigError([forbidden(_PATH, detail)]) from error
    if errors:
        raise ConfigError(errors)
    return Rules(configured=configured, kstatus=settings.kstatus)


def _kind_errors(path: str, group: str, kind: str) -> Iterator[FieldError]:
    if not is_custom(group):
        yield forbidden(f"{path}.apiVersion", "expressions are for custom resources only")
    elif has_rule(group, kind):
        yield forbidden(f"{path}.kind", f"{kind} has a built-in rule, which can't be replaced; remove the expressions")
