"""The table of a program's controllers, each imported only if the configuration switches it on.

    CONTROLLERS = Table[Configuration, Context](
        "agent.resource_manager",
        {"token_invalidator.controller": lambda config: config.controllers.token_invalidator.enabled},
    )

A line names the module, below the package of the program, and what switches the controller on. The module has
`declare`; one with several controllers has a function for each, as in `module:function`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Generic, TypeAlias, TypeVar

from kube.runtime.loop import ControlLoop

C = TypeVar("C")
X = TypeVar("X")

Declare: TypeAlias = Callable[[X], ControlLoop]
"""Declares a control loop, from the program's context; called where this process leads."""


def always(_config: object) -> bool:
    """Of a controller that nothing switches off."""
    return True


@dataclass(frozen=True)  # with slots, Python could not note the types on it
class Table(Generic[C, X]):
    """`C` is the program's configuration, `X` its context."""

    package: str
    controllers: Mapping[str, Callable[[C], bool]]

    def load(self, config: C) -> Sequence[Declare[X]]:
        """Import what is enabled. To be called at the start: to import takes time that a new leader has not."""
        return [self._imported(path) for path, is_enabled in self.controllers.items() if is_enabled(config)]

    def _imported(self, path: str) -> Declare[X]:
        module, _, function = path.partition(":")
        declare: Declare[X] = getattr(import_module(f"{self.package}.{module}"), function or "declare")
        return declare
