"""Advice on problems of a ManagedResource, from conditions and objects."""

from collections.abc import Sequence

from gardener import keys
from gardener.conditions import RESOURCES_APPLIED
from gardener.managed_resource import conditions
from gardener.managed_resource.conditions import warnings_in
from gardener.managed_resource.references import listed_in
from gardener.managed_resource.remedies import remedies_of_failure, remedies_of_warnings
from gardener.overview.objects import Health, Live
from gardener.overview.states import ResourceState, manual_steps, state_of, without_false_namespaces
from gardener.responsibility import parse_origin
from kube.objects import Key, Object, annotations, condition, finalizers, is_deleting, key

_BY_REASON = {
    conditions.CANNOT_READ: "create the Secret, or correct spec.secretRefs; no objects are applied or removed until "
    "then",
    conditions.DECODING_FAILED: "correct the document in the message (kubectl mr decode SECRET -n NAMESPACE "
    "shows it); no objects are removed until then",
    conditions.RELEASE_FAILED: "see the error; usually, grant the agent the missing permission",
}


ELSEWHERE = "none of the objects exists in this cluster"
TARGET_REMEDY = (
    "if they are applied to another one, set its kubeconfig by --target-kubeconfig; if they were deleted here, set "
    "that of this cluster"
)


def command(verb: str, own: Key) -> str:
    """Command of `kubectl mr` for a ManagedResource, in whatever namespace the reader is."""
    return f"kubectl mr {verb} {own.name} -n {own.namespace}"


def is_elsewhere(managed_resource: Object, found: Sequence[Live]) -> bool:
    """Whether the objects probably are in another cluster: some of those that the ManagedResource lists are missing
    here, and those of the same names that are here do not name it as their origin.
    """
    if is_deleting(managed_resource) or state_of(managed_resource) is ResourceState.FAILED:
        return False
    missing = [live for live in found if live.status.health is Health.MISSING]
    others = [live for live in found if live.object is not None and not _is_from(managed_resource, live.object)]
    return bool(missing) and len(missing) + len(others) == len(found)


def _is_from(managed_resource: Object, obj: Object) -> bool:
    try:
        return parse_origin(annotations(obj).get(keys.ORIGIN) or "").key == key(managed_resource)
    except ValueError:
        return False


def hints(managed_resource: Object, found: Sequence[Live]) -> list[str]:
    """Hints, each of them once, the most important first."""
    state = state_of(managed_resource)
    advice: list[str] = []
    if state is ResourceState.SUSPENDED:
        advice.append(f"to resume: {command('resume', key(managed_resource))}")
    elif state is ResourceState.PENDING:
        advice.append("kubectl mr check shows whether an agent of the same class runs")
    elif state is ResourceState.FAILED:
        advice += _of_failure(managed_resource)
    if is_deleting(managed_resource):
        advice += _of_deletion(managed_resource, found)
    elif is_elsewhere(managed_resource, found):
        advice.append(f"{ELSEWHERE}; {TARGET_REMEDY}")
    advice += remedies_of_warnings(warnings_in(condition(managed_resource, RESOURCES_APPLIED) or {}))
    advice += filter(None, [manual_steps(managed_resource)])
    if state is ResourceState.UNHEALTHY:
        advice += [f"look at {live.name}" for live in found if live.status.health is Health.UNHEALTHY][:3]
    return list(dict.fromkeys(advice))


def _of_failure(managed_resource: Object) -> list[str]:
    applied = condition(managed_resource, RESOURCES_APPLIED) or {}
    if known := _BY_REASON.get(applied.get("reason") or ""):
        return [known]
    return remedies_of_failure(without_false_namespaces(applied.get("message") or "", listed_in(managed_resource)))


def _of_deletion(managed_resource: Object, found: Sequence[Live]) -> list[str]:
    advice = _of_failure(managed_resource)
    advice += [
        f"{live.name} {live.status.message}: check the controller that owns them, or remove them"
        for live in found
        if live.object is not None and is_deleting(live.object) and finalizers(live.object)
    ]
    if not found and finalizers(managed_resource):
        advice.append(f"it waits for {', '.join(finalizers(managed_resource))}: check whether that agent runs")
    if annotations(managed_resource).get(keys.OPERATION) == keys.OPERATION_WAIT_FOR_STATE:
        advice.append(f"the annotation {keys.OPERATION}={keys.OPERATION_WAIT_FOR_STATE} delays it")
    return advice
