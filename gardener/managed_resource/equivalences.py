"""Kinds whose objects also exist in another API group, such as a Deployment of `extensions` and of `apps`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

GroupKind = tuple[str, str]

_BUILT_IN: tuple[tuple[GroupKind, ...], ...] = (
    *((("extensions", kind), ("apps", kind)) for kind in ("Deployment", "DaemonSet", "ReplicaSet", "StatefulSet")),
    *((("extensions", kind), ("networking.k8s.io", kind)) for kind in ("Ingress", "NetworkPolicy")),
)


class Equivalences:
    def __init__(self, extra: Iterable[Sequence[Mapping[str, str]]] = ()) -> None:
        """Built-in and further equivalences. Args: extra: `spec.equivalences`, lists of `{group, kind}`."""
        self._sets: dict[GroupKind, dict[GroupKind, None]] = {}
        for members in _BUILT_IN:
            self._add(members)
        for listed in extra:
            self._add([(item.get("group") or "", item.get("kind") or "") for item in listed])

    def _add(self, members: Sequence[GroupKind]) -> None:
        # The whole list joins the first set that has one of its members; other sets are not merged into it.
        joined = next((self._sets[member] for member in members if member in self._sets), {})
        for member in members:
            joined[member] = None
            self._sets[member] = joined

    def others(self, group: str, kind: str) -> Iterator[GroupKind]:
        """The equivalents of a kind, without itself."""
        own = (group, kind)
        return (member for member in self._sets.get(own, {}) if member != own)
