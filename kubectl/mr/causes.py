"""Causes of unhealthy objects: reports of the scheduler, a kubelet, or a controller about the objects that they made.

The health of a Deployment reports that replicas are missing; its pods report why, or Events if there are none.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from gardener.health.checks.workload_pods import cause_of_pod, one_line
from gardener.health.findings import NO_LOAD_BALANCER
from gardener.overview.events import in_order
from gardener.overview.objects import Health, Live, name_of
from kube.errors import KubeError
from kube.objects import Object, key, mapping, mappings, metadata, spec, text, uid
from kube.paths import mappings_at
from kube.resources import EVENTS, JOBS, PODS, REPLICA_SETS
from kube.runtime.client import Selection
from kubectl.mr.live import OWNERS
from kubectl.session import Cluster, gathered

_MOST = 10
"""Maximum number of objects to explain."""
_AT_ONCE = 4
_BAD = frozenset({Health.UNHEALTHY, Health.PROGRESSING})


async def explained(cluster: Cluster, found: Sequence[Live]) -> list[Live]:
    """Add the cause to the messages of objects that are not healthy, as far as it may be read."""
    ill = [live for live in found if live.status.health in _BAD and live.object is not None][:_MOST]
    causes = dict(zip(map(id, ill), await gathered(partial(_cause, cluster), ill, at_once=_AT_ONCE), strict=True))
    return [_with(live, causes.get(id(live), "")) for live in found]


def _with(live: Live, cause: str) -> Live:
    if not cause or cause in live.status.message:
        return live
    message = f"{live.status.message}; {cause}" if live.status.message else cause
    return replace(live, status=replace(live.status, message=message))


async def _cause(cluster: Cluster, live: Live) -> str:
    obj = live.object or {}
    try:
        made = await _made_by(cluster, obj) if obj.get("kind") in OWNERS else []
        pods = [obj] if obj.get("kind") == "Pod" else [each for each in made if each.get("kind") == "Pod"]
        for pod in pods:
            if cause := cause_of_pod(pod):
                return await _with_last_line(cluster, pod, cause) if pod is not obj else cause
        return await _warning(cluster, [obj, *made])
    except KubeError:
        return ""  # unreadable objects explain nothing


async def _made_by(cluster: Cluster, owner: Object) -> list[Object]:
    """Pods and their owners below an object, down to the last level."""
    namespace = key(owner).namespace
    below: dict[str, list[Object]] = {}
    for resource in (REPLICA_SETS, JOBS, PODS):
        for each in await cluster.client.list(resource, Selection(namespace=namespace)):
            for reference in mappings(metadata(each).get("ownerReferences")):
                below.setdefault(text(reference.get("uid")), []).append(each)
    found, level = list[Object](), [owner]
    while level:
        level = [each for one in level for each in below.pop(uid(one), ())]
        found += level
    return found


async def _with_last_line(cluster: Cluster, pod: Object, cause: str) -> str:
    """Add the last line that a container wrote before it ended, if it left no message."""
    crashed = next((each for each in mappings_at(pod, "status", "containerStatuses") if _has_crashed(each)), None)
    if crashed is None or f"container {text(crashed.get('name'))}:" not in cause:
        return cause
    path = PODS.path(namespace=key(pod).namespace, name=key(pod).name, subresource="log")
    parameters = {"container": text(crashed.get("name")), "previous": "true", "tailLines": "1"}
    try:
        async with cluster.client.lines(path, params=parameters) as lines:
            last = [line.decode(errors="replace") async for line in lines]
    except KubeError:
        return cause
    return f"{cause}; its last line: {one_line(last[-1])}" if last and last[-1].strip() else cause


def _has_crashed(status: Object) -> bool:
    terminated = mapping(mapping(status.get("lastState")).get("terminated"))
    return bool(terminated.get("exitCode")) and not terminated.get("message")


async def _warning(cluster: Cluster, objects: Iterable[Object]) -> str:
    """Newest warning about any of them."""
    of = {uid(each): each for each in objects}
    namespace = key(next(iter(of.values()))).namespace or "default"
    selection = Selection(namespace=namespace, field_selector="type=Warning")
    events = [
        event
        for event in in_order(await cluster.client.list(EVENTS, selection))
        if mapping(event.get("involvedObject")).get("uid") in of
    ]
    if events:
        newest = events[-1]
        about = of[text(mapping(newest.get("involvedObject")).get("uid"))]
        return f"{name_of(about)}: {text(newest.get('reason'))}: {one_line(newest.get('message'))}"
    return _without_events(next(iter(of.values())))


def _without_events(obj: Object) -> str:
    if obj.get("kind") == "Service" and spec(obj).get("type") == "LoadBalancer":
        return NO_LOAD_BALANCER
    return ""
