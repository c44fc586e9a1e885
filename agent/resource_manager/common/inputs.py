"""Keys without new input since their last reconciliation began: another one would find nothing new.

A regular reconciliation of such a key can be left out, see `RequeueAfter.is_needless`. So every change of an input of a
reconciliation is reported here, even if it also queues the key: a key that already waits for its regular reconciliation
is not queued once more.
"""

from kube.objects import Key


class Inputs:
    def __init__(self) -> None:
        self._unchanged: set[Key] = set()

    def begin(self, key: Key) -> None:
        """Note that a reconciliation is about to read its inputs."""
        self._unchanged.add(key)

    def changed(self, key: Key) -> None:
        """Note that an input of the key's reconciliation was changed or deleted."""
        self._unchanged.discard(key)

    def all_changed(self) -> None:
        """Note the change of an input that many keys share."""
        self._unchanged.clear()

    def are_unchanged(self, key: Key) -> bool:
        return key in self._unchanged
