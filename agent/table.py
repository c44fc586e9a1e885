"""The table of a program's controllers, each imported only if the configuration switches it on.

    CONTROLLERS = Table[Configuration, Context]()

    @CONTROLLERS.enabled_by(lambda config: config.controllers.token_invalidator.enabled)
    def token_invalidator() -> Declare[Context]:
        from agent.resource_manager.token_invalidator.controller import declare

        return declare

The line above the function is all that decides whether it is called.
"""

from collections.abc import Callable, Sequence
from typing import Generic, TypeAlias, TypeVar

from kube.loop import ControlLoop

C = TypeVar("C")
X = TypeVar("X")

Declare: TypeAlias = Callable[[X], ControlLoop]
"""Declares a control loop, from the program's context; called where this process leads."""
Load: TypeAlias = Callable[[], Declare[X]]


class Table(Generic[C, X]):
    """`C` is the program's configuration, `X` its context."""

    def __init__(self) -> None:
        self._entries: list[tuple[Callable[[C], bool], Load[X]]] = []

    def enabled_by(self, is_enabled: Callable[[C], bool]) -> Callable[[Load[X]], Load[X]]:
        """Enters a controller: the function imports it."""

        def enter(load: Load[X]) -> Load[X]:
            self._entries.append((is_enabled, load))
            return load

        return enter

    def always(self, load: Load[X]) -> Load[X]:
        """Enters a controller that nothing switches off."""
        return self.enabled_by(lambda _: True)(load)

    def load(self, config: C) -> Sequence[Declare[X]]:
        """Import what is enabled. To be called at the start as well: to import takes time that a new leader has not."""
        return [load() for is_enabled, load in self._entries if is_enabled(config)]
