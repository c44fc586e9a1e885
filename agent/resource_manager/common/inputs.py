"""Which keys have had no other input since their last reconciliation began, so that another one would find nothing new.

A regular reconciliation of such a key can be left out, see `RequeueAfter.is_needless`. So whatever a reconciliation
reads, its changes are reported here: also those that have a key reconciled for them, since a key that already waits for
its regular reconciliation is not queued once more.
"""

from kube.objects import Key


class Inputs:
    def __init__(self) -> None:
        self._unchanged: set[Key] = set()

    def begin(self, key: Key) -> None:
        """A reconciliation is about to read what there is."""
        self._unchanged.add(key)

    def changed(self, key: Key) -> None:
        """Something that a reconciliation of it reads; also that it is gone."""
        self._unchanged.discard(key)

    def all_changed(self) -> None:
        """Something that reconciliations of many keys read."""
        self._unchanged.clear()

    def are_unchanged(self, key: Key) -> bool:
        return key in self._unchanged
