"""ManagedResources that have changed and were not planned since, so that their desired objects are unknown.

A removal waits for the changes so far, as its object may have moved, but for other namespaces only a moment: no author
decides how long others wait. Times are monotonic.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field

from kube.objects import Key

NEVER = float("inf")


@dataclass(slots=True)
class _Span:
    first: float
    last: float


@dataclass(eq=False, slots=True)
class Unknown:
    _namespaces: OrderedDict[str, OrderedDict[Key, _Span]] = field(default_factory=OrderedDict)

    def __contains__(self, name: Key) -> bool:
        return name in self._namespaces.get(name.namespace, ())

    def __bool__(self) -> bool:
        return bool(self._namespaces)

    def changed(self, name: Key, *, now: float) -> None:
        span = self._namespaces.setdefault(name.namespace, OrderedDict()).setdefault(name, _Span(now, now))
        span.last = max(span.last, now)

    def known(self, name: Key, *, as_of: float) -> None:
        """Note that all changes until then were planned, or cannot be; later ones were not."""
        if name not in self:
            return
        span = self._namespaces[name.namespace][name]
        if span.last <= as_of:
            self.forget(name)
        else:
            span.first = max(span.first, as_of)

    def forget(self, name: Key) -> None:
        names = self._namespaces.get(name.namespace)
        if names is not None and names.pop(name, None) is not None and not names:
            del self._namespaces[name.namespace]

    def next(self) -> Key | None:
        """Return the next one to plan: namespaces take turns, and so do the names of each."""
        if not self._namespaces:
            return None
        namespace, names = next(iter(self._namespaces.items()))
        name = next(iter(names))
        self._namespaces.move_to_end(namespace)
        names.move_to_end(name)
        return name

    def since(self, own: Key) -> tuple[float, float]:
        """Times since when others in the namespace, and in other namespaces, are unknown; NEVER if all are known."""
        namespace = own.namespace
        siblings = (span for name, span in self._namespaces.get(namespace, {}).items() if name != own)
        others = (_first(names.values()) for each, names in self._namespaces.items() if each != namespace)
        return _first(siblings), min(others, default=NEVER)


def _first(spans: Iterable[_Span]) -> float:
    return min((span.first for span in spans), default=NEVER)
