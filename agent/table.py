"""Table of a program's controllers, each imported only if the configuration enables it.

    CONTROLLERS = Table[Configuration, Context](
        "agent.resource_manager",
        {"token_invalidator.controller": lambda config: config.controllers.token_invalidator.enabled},
    )

A line names the module, below the package of the program, and the condition that enables the controller. The module has
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
"""Function that declares a control loop, from the program's context; called where this process leads."""


def always(_config: object) -> bool:
    """Condition of a controller that can't be disabled."""
    return True


@dataclass(frozen=True)  # with slots, Python could not store the type arguments
class Table(Generic[C, X]):
    """`C` is the program's configuration, `X` its context."""

    package: str
    controllers: Mapping[str, Callable[[C], bool]]

    def load(self, config: C) -> Sequence[Declare[X]]:
        """Import the enabled controllers at the start of the process: a new leader has no time for imports."""
        return [self._imported(path) for path, is_enabled in self.controllers.items() if is_enabled(config)]

    def _imported(self, path: str) -> Declare[X]:
        module, _, function = path.partition(":")
        declare: Declare[X] = getattr(import_module(f"{self.package}.{module}"), function or "declare")
        return declare
