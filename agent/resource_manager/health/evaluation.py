"""The rules that the configuration adds to the built-in ones, and the process that evaluates their expressions.

What is wrong with an expression ends the start. Data of an object decides what an evaluation costs, so expressions are
evaluated by a process of their own, which can be ended. The child is started with the first evaluation and ends with
this process. The kernel ends it when an evaluation takes too much processor time, and it gets no more memory than it
may have; the next evaluation starts another one.

What an evaluation costs is blamed on the object: it is not evaluated for a while. The objects of a namespace are not,
if several of them cost too much, and none of the rule, if those of several namespaces do: then it is the expression.
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
"""Bytes that the child may take beyond what it has when it begins."""
BLAMED_SECONDS = 600.0
MOST_OBJECTS = 3
"""Of a namespace, that may cost too much before others of it are not evaluated."""
MOST_NAMESPACES = 5
_START_SECONDS, _ANSWER_SECONDS = 30.0, 5.0
_REMEMBERED = 1000


class Blame:
    """Of the objects of one rule. Args: now: monotonic seconds."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._costly: dict[Key, tuple[float, str]] = {}
        """Until when, and why."""

    def check(self, key: Key) -> None:
        """Raises CheckError: the object is not to be evaluated."""
        now = self._now()
        self._costly = {each: found for each, found in self._costly.items() if found[0] > now}
        if key in self._costly:
            raise CheckError(f"{self._costly[key][1]}; it is evaluated again after ten minutes, reduce the object")
        of_namespace = sum(each.namespace == key.namespace for each in self._costly)
        if of_namespace >= MOST_OBJECTS:
            raise CheckError(f"{of_namespace} objects of the namespace took too much, it is not evaluated for others")
        namespaces = {each.namespace for each in self._costly}
        if len(namespaces) >= MOST_NAMESPACES:
            raise CheckError(f"objects of {len(namespaces)} namespaces took too much; simplify the expression")

    def add(self, key: Key, why: str) -> None:
        if len(self._costly) < _REMEMBERED:
            self._costly[key] = self._now() + BLAMED_SECONDS, why


class Evaluator:
    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._blame: dict[tuple[str, str], Blame] = {}

    def first_true(self, expressions: Mapping[str, Expression], variables: Mapping[str, Any]) -> str | None:
        """The name of the first expression that is true. Raises CheckError."""
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
            # No object is to blame.
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
            return f"it took more than {LONGEST_SECONDS} s of processor time"
        return f"it took more than {MEMORY >> 20} MiB of memory"


class _EndedError(Exception):
    """The child has ended; the text says why."""


# --- configured rules


_PATH = "controllers.health.healthCheckExprs"


def rules_of(settings: Health) -> Rules:
    """Raises ConfigError."""
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
        yield forbidden(f"{path}.kind", f"{kind} has a rule of its own, which can't be replaced")
