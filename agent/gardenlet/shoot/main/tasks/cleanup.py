"""Clean-up of user objects in the cluster of a Shoot, see `rules.cleanup`.

Kinds are listed again until a round finds nothing: running controllers may create objects meanwhile.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from agent.gardenlet.flow.graph import ONCE, Task
from agent.gardenlet.flow.run import waits_for
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.rules import cleanup as rules
from agent.gardenlet.shoot.main.rules.cleanup import Kind, is_overdue, is_spared, kinds
from agent.gardenlet.shoot.main.skipping import no_clean_up
from gardener.error_codes import CLEANUP_CLUSTER_RESOURCES
from kube.apply.application import for_each
from kube.errors import Conflict, KindNotServed, NotFound
from kube.objects import Object, finalizers, held_by, is_deleting, key, metadata, uid
from kube.resources import PODS, Resource
from kube.runtime import discovery_documents
from kube.runtime.client import Form, Selection
from kube.runtime.controller import ReconcileError
from kube.runtime.polling import wait_while
from process.clusters import Cluster

_SECONDS = 600.0
_LOOK_SECONDS = 5.0
_MOST_NAMED = 10


class CleanupError(ReconcileError):
    """Objects are left; the message names them."""

    codes = (CLEANUP_CLUSTER_RESOURCES,)


@dataclass(slots=True)
class Left:
    """Objects that still exist."""

    count: int = 0
    names: list[str] = field(default_factory=list)
    """Names of the first ones, with the reason that holds each."""

    def add(self, resource: Resource, obj: Object, held: str) -> None:
        self.count += 1
        if len(self.names) < _MOST_NAMED:
            self.names.append(f"{resource.kind} {key(obj)} ({held})")

    def __str__(self) -> str:
        more = self.count - len(self.names)
        return ", ".join(self.names) + (f" and {more} more" if more else "")


async def clean_up(operation: ShootOperation, wanted: Sequence[Kind]) -> None:
    """Return when no objects of these kinds are left, except for spared ones.

    Raises:
        CleanupError: objects were left at the end of the time limit.
        NoConnectionError: there is no connection to the Shoot.
    """
    async with operation.cluster() as cluster:
        served = await _served(cluster, kinds(wanted, operation.shoot))

        async def problem() -> str:
            return str(await _round(cluster, served, operation.shoot))

        if left := await wait_while(problem, seconds=_SECONDS, every=_LOOK_SECONDS, report=waits_for):
            raise CleanupError(f"still in the cluster: {left}")


async def _served(cluster: Cluster, wanted: Iterable[Kind]) -> list[Kind]:
    """Kinds that the cluster serves: a Shoot without workers does not serve kinds that only create pods."""
    versions = {
        group: await discovery_documents.versions(cluster.client.read, group)
        for group in {each.resource.group for each in wanted}
    }
    return [each for each in wanted if each.resource.api_version in versions[each.resource.group]]


async def _round(cluster: Cluster, served: Sequence[Kind], shoot: Object) -> Left:
    left = Left()
    for kind in served:
        with suppress(KindNotServed):  # it has no objects
            async for page in cluster.client.pages(kind.resource, Selection(), form=Form.METADATA):
                found = [each for each in page if not is_spared(kind.resource, each)]
                await for_each(partial(_remove, cluster, kind, shoot), found)
                for each in found:
                    left.add(kind.resource, each, held_by(each) if is_deleting(each) else "was deleted just now")
    return left


async def _remove(cluster: Cluster, kind: Kind, shoot: Object, obj: Object) -> None:
    name, resource = key(obj), kind.resource
    delete = partial(cluster.client.delete, resource, name, uid=uid(obj))
    with suppress(NotFound, Conflict):  # deleted, or recreated: see the next round
        if not is_deleting(obj):
            await delete(propagation="Background")
        elif is_overdue(obj, kind.patience(shoot), now=cluster.deletion_clock()):
            if resource == PODS:
                await delete(grace_seconds=0)
            if finalizers(obj):
                meta = {"resourceVersion": metadata(obj)["resourceVersion"], "finalizers": None}
                await cluster.client.patch(resource, name, {"metadata": meta})


def _task(its_id: str, name: str, wanted: Sequence[Kind], after: str) -> Task[ShootOperation]:
    return Task(its_id, name, partial(clean_up, wanted=wanted), after=[after], unless=no_clean_up, retry=ONCE)


TASKS = (
    _task("webhooks", "Cleaning up webhooks", rules.WEBHOOKS, "connection"),
    _task("extended-apis", "Cleaning extended API groups", rules.EXTENDED_APIS, "controller-manager-ready"),
    _task("workloads", "Cleaning Kubernetes resources", rules.WORKLOADS, "extended-apis"),
)
