"""Pods of the target cluster: counted for Deployments, and consulted for the cause of a workload's problem.

Pods do not carry our label, so all of them are watched, but only labels and the cause of missing readiness are kept.
The watch exists as long as some ManagedResource has Deployments, or another workload with a problem.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from gardener.health.checks.workload_pods import Bucket, PodsWanted, buckets, cause_of_pod, is_over
from kube.objects import Key, Object, key, label_selector_text, labels
from kube.resources import PODS
from kube.runtime.cache import Caches, Change, Store, View
from kube.runtime.client import Client, Selection
from kube.runtime.loop import ControlLoop, Queue

_LIST_SECONDS = 20.0
_BY_BUCKET = "bucket"


@dataclass(frozen=True, slots=True)
class CountedPod:
    namespace: str
    labels: Mapping[str, str]
    cause: str = ""
    """Reason why it is not ready."""
    is_over: bool = False
    """Whether it has terminated: it is not counted, and kept only for its cause."""


def counted(pod: Object) -> CountedPod | None:
    """Return the kept part; None for a terminated pod without a cause to report."""
    cause, over = cause_of_pod(pod), is_over(pod)
    return None if over and not cause else CountedPod(key(pod).namespace, labels(pod), cause, over)


def _buckets(pod: CountedPod | None) -> Sequence[Bucket]:
    return buckets(pod.namespace, pod.labels) if pod is not None else ()


_VIEW = View(PODS, counted, indexes=((_BY_BUCKET, _buckets),), streams=True)


class Pods:
    """Args:
    on_change: called with a changed pod, and whether it starts or stops to count.
    on_list: called when counts may change while pods are listed.
    """

    def __init__(
        self,
        loop: ControlLoop,
        *,
        client: Client,
        caches: Caches,
        on_change: Callable[[CountedPod, bool], None],
        on_list: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._client = client
        self._caches = caches
        self._on_change = on_change
        self._on_list = on_list
        self._store: Store[CountedPod | None] | None = None
        self._users: set[Key] = set()

    async def use(self, user: Key) -> None:
        """Watch pods for a ManagedResource; return after they were listed, or the list failed."""
        if not self.watch(user).synced.is_set():
            await self._caches.tried(_VIEW, timeout=_LIST_SECONDS)

    def watch(self, user: Key) -> Store[CountedPod | None]:
        """Watch pods for a ManagedResource without waiting for the list."""
        self._users.add(user)
        if self._store is None:
            self._store = self._loop.watch(self._caches, _VIEW, self._changed)
        return self._store

    def forget(self, user: Key) -> None:
        """Note that the ManagedResource needs no pods (any more); the last one ends the watch."""
        self._users.discard(user)
        if not self._users and self._store is not None:
            self._loop.unwatch(self._store)
            self._store = None

    async def count(self, wanted: PodsWanted) -> int:
        """Return the number of pods that a Deployment selects.

        Raises:
            KubeError: the watch does not know it, and the pods cannot be listed.
        """
        known = self.known_count(wanted)
        if known is not None:
            return known
        match_labels = (wanted.selector or {}).get("matchLabels") or {}
        selection = Selection(wanted.namespace, label_selector_text(match_labels))
        return _count(wanted, [counted(pod) for pod in await self._client.list(PODS, selection)])

    def known_count(self, wanted: PodsWanted) -> int | None:
        """Return the number of selected pods; None if the watch does not know it."""
        pods = self._known(wanted)
        return None if pods is None else _count(wanted, pods)

    def known_cause(self, wanted: PodsWanted) -> str | None:
        """Return the cause of a workload's problem, from the first pod with one; None if the watch does not know it."""
        pods = self._known(wanted)
        if pods is None:
            return None
        ill = [(pod.is_over, pod.cause) for pod in pods if pod is not None and pod.cause and wanted.select(pod.labels)]
        return min(ill)[1] if ill else ""

    def _known(self, wanted: PodsWanted) -> Sequence[CountedPod | None] | None:
        """Return pods that it may select; None if the watch does not have them."""
        store = self._store
        if store is None or not store.synced.is_set() or not self._caches.covers(PODS, wanted.namespace):
            return None
        return store.values_by_index(_BY_BUCKET, wanted.bucket)

    def _changed(self, _: Queue, change: Change[CountedPod | None]) -> None:
        if self._store is None or change.old == change.new:
            return
        # The first list brings no changes: its users have waited for it.
        if not self._store.synced.is_set():
            self._on_list()
            return
        counts = _labels_that_count(change.old) != _labels_that_count(change.new)
        for pod in (change.old, change.new):
            if pod is not None:
                self._on_change(pod, counts)


def _labels_that_count(pod: CountedPod | None) -> Mapping[str, str] | None:
    return None if pod is None or pod.is_over else pod.labels


def _count(wanted: PodsWanted, pods: Iterable[CountedPod | None]) -> int:
    return sum(1 for pod in pods if pod is not None and not pod.is_over and wanted.select(pod.labels))
