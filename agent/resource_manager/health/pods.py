"""The pods of the target cluster: counted for Deployments, and asked why a workload is not as it should be.

Pods don't carry our label, so all of them are watched, and of each only the labels are kept, and why it is not ready.
There is a watch as long as some ManagedResource has Deployments, or another workload that is not as it should be.
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
    """Why it is not ready."""
    is_over: bool = False
    """It is not counted, and kept only for its cause."""


def counted(pod: Object) -> CountedPod | None:
    """None for a pod that is over and leaves nothing to say."""
    cause, over = cause_of_pod(pod), is_over(pod)
    return None if over and not cause else CountedPod(key(pod).namespace, labels(pod), cause, over)


def _buckets(pod: CountedPod | None) -> Sequence[Bucket]:
    return buckets(pod.namespace, pod.labels) if pod is not None else ()


_VIEW = View(PODS, counted, indexes=((_BY_BUCKET, _buckets),), streams=True)


class Pods:
    """Args:
    on_change: called with a pod that is other than before, and whether it counts from now on, or no more.
    on_list: called when others may count, while pods are listed.
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
        """Watch pods for a ManagedResource; returns when they were listed, or could not be."""
        if not self.watch(user).synced.is_set():
            await self._caches.tried(_VIEW, timeout=_LIST_SECONDS)

    def watch(self, user: Key) -> Store[CountedPod | None]:
        """The same without waiting for the list."""
        self._users.add(user)
        if self._store is None:
            self._store = self._loop.watch(self._caches, _VIEW, self._changed)
        return self._store

    def forget(self, user: Key) -> None:
        """The ManagedResource has nothing (any more) whose pods are of interest."""
        self._users.discard(user)
        if not self._users and self._store is not None:
            self._loop.unwatch(self._store)
            self._store = None

    async def count(self, wanted: PodsWanted) -> int:
        """How many pods there are that a Deployment selects. Raises KubeError."""
        known = self.known_count(wanted)
        if known is not None:
            return known
        match_labels = (wanted.selector or {}).get("matchLabels") or {}
        selection = Selection(wanted.namespace, label_selector_text(match_labels))
        return _count(wanted, [counted(pod) for pod in await self._client.list(PODS, selection)])

    def known_count(self, wanted: PodsWanted) -> int | None:
        """The same, if the watch knows it."""
        pods = self._known(wanted)
        return None if pods is None else _count(wanted, pods)

    def known_cause(self, wanted: PodsWanted) -> str | None:
        """Why a workload is not as it should be, by the first pod that says so; None: the watch does not know."""
        pods = self._known(wanted)
        if pods is None:
            return None
        ill = [(pod.is_over, pod.cause) for pod in pods if pod is not None and pod.cause and wanted.select(pod.labels)]
        return min(ill)[1] if ill else ""

    def _known(self, wanted: PodsWanted) -> Sequence[CountedPod | None] | None:
        """Those that it may select."""
        store = self._store
        if store is None or not store.synced.is_set() or not self._caches.covers(PODS, wanted.namespace):
            return None
        return store.values_by_index(_BY_BUCKET, wanted.bucket)

    def _changed(self, _: Queue, change: Change[CountedPod | None]) -> None:
        if self._store is None or change.old == change.new:
            return
        # What the first list holds is no change: its users have waited for it.
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
