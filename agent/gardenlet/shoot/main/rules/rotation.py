"""Rotations of a Shoot's credentials in its status: their start, and the end of each step. Pure.

Everything else follows from the status: which Secrets exist, and how the old ones are used. Therefore a requested
operation is written to the status first, then its annotation is removed. A pass that follows an interruption finds the
phase, and changes nothing.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any

from gardener import keys
from gardener.garden.rotations import (
    AUTHORITIES,
    COMPLETED,
    COMPLETING,
    ENCRYPTION_KEY,
    KUBECONFIG,
    OBSERVABILITY,
    ON_NODES,
    PENDING,
    PREPARED,
    PREPARING,
    PREPARING_WITHOUT_ROLLOUT,
    SERVICE_ACCOUNT_KEY,
    SSH,
    WAITING_FOR_ROLLOUT,
    Asked,
    pending_pools,
    phase,
    requested,
)
from gardener.garden.shoots import has_ssh, workers
from kube.clock import format_time, time_or_none
from kube.objects import Object, annotations, mapping, mappings, spec, text
from kube.paths import at, mapping_at

SERVERS_BY_CURRENT = "credentials.gardener.cloud/servers-by-current-ca"
"""Annotation of the API server's Deployment during completion: the authorities whose servers all have current
certificates. Only then clients stop trusting the old ones.
"""
_IN_TWO_STEPS = (AUTHORITIES, SERVICE_ACCOUNT_KEY, ENCRYPTION_KEY)
_IN_ONE_STEP = (KUBECONFIG, SSH, OBSERVABILITY)
_OVER = ("", COMPLETED)


def has_static_kubeconfig(shoot: Object) -> bool:
    return at(spec(shoot), "kubernetes", "enableStaticTokenKubeconfig") is True


def asked_of(shoot: Object) -> Asked | None:
    """Requested rotation; None if the operation annotation has none."""
    return requested(annotations(shoot).get(keys.OPERATION, ""))


def begun(shoot: Object, *, now: datetime) -> Object:
    """Fields of the status when a requested rotation begins; running rotations are not restarted."""
    wanted = asked_of(shoot)
    if wanted is None:
        return {}
    found = _rotations(mapping(shoot.get("status")))
    for what in wanted.starts:
        if phase(shoot, what) in _OVER:
            stay = _pools(shoot) if wanted.keeps_nodes and what in ON_NODES else []
            found[what] = _started(mapping(found.get(what)), stay, now=now)
    for what in ON_NODES:
        if phase(shoot, what) == WAITING_FOR_ROLLOUT:
            found[what] = _without_pools(mapping(found[what]), wanted.pools)
    for what in wanted.completes:
        if phase(shoot, what) == PREPARED:
            triggered = {"phase": COMPLETING, "lastCompletionTriggeredTime": format_time(now)}
            found[what] = {**mapping(found[what]), **triggered}
    for what in _possible(shoot, wanted.renews):
        if not _is_under_way(mapping(found.get(what))):
            found[what] = {**mapping(found.get(what)), "lastInitiationTime": format_time(now)}
    return _fields(shoot, found)


def ended(shoot: Object, status: Object, *, now: datetime) -> Object:
    """Fields of the status after an operation has succeeded.

    Args:
        shoot: as at the start of the operation; rotations that began later are not finished.
        status: current status.
        now: the time.
    """
    found, reported = _rotations(status), format_time(now)
    for what in _IN_TWO_STEPS:
        own = mapping(found.get(what))
        if not own or own.get("phase") != phase(shoot, what):
            continue
        match own["phase"]:
            case "Preparing":
                found[what] = {**own, "phase": PREPARED, "lastInitiationFinishedTime": reported}
            case "PreparingWithoutWorkersRollout":
                found[what] = {**own, "phase": WAITING_FOR_ROLLOUT}
            case "WaitingForWorkersRollout":
                gone = pending_pools(shoot, what).keys() - set(_pools(shoot))
                left = _without_pools(own, gone)
                prepared = {"phase": PREPARED, "lastInitiationFinishedTime": reported}
                found[what] = left if PENDING in left else {**left, **prepared}
            case "Completing":
                left_out = {"lastInitiationFinishedTime", "lastCompletionTriggeredTime"}
                kept = {name: value for name, value in own.items() if name not in left_out}
                found[what] = {**kept, "phase": COMPLETED, "lastCompletionTime": reported}
    for what in _IN_ONE_STEP:
        own = mapping(found.get(what))
        has_begun = own.get("lastInitiationTime") == mapping_at(shoot, *_PATH, what).get("lastInitiationTime")
        if own and has_begun and _is_under_way(own):
            found[what] = {**own, "lastCompletionTime": reported}
    possible = {*_IN_TWO_STEPS, *_possible(shoot, _IN_ONE_STEP)}
    return _fields({"status": status}, {what: each for what, each in found.items() if what in possible})


def _started(before: Object, pools: list[str], *, now: datetime) -> Object:
    """Args: pools: worker pools whose nodes are not rolled out."""
    started: Object = {"phase": PREPARING, "lastInitiationTime": format_time(now)}
    if completed := before.get("lastCompletionTime"):
        started["lastCompletionTime"] = completed
    if pools:
        since = before.get("lastInitiationTime")
        pending = [{"name": each, **({"lastInitiationTime": since} if since else {})} for each in pools]
        started |= {"phase": PREPARING_WITHOUT_ROLLOUT, PENDING: pending}
    return started


def _without_pools(rotation: Object, pools: Collection[str]) -> Object:
    left = [each for each in mappings(rotation.get(PENDING)) if each.get("name") not in pools]
    others = {name: value for name, value in rotation.items() if name != PENDING}
    return {**others, PENDING: left} if left else others


def _pools(shoot: Object) -> list[str]:
    return [text(each.get("name")) for each in workers(spec(shoot))]


def _possible(shoot: Object, whats: Iterable[str]) -> list[str]:
    """Credentials that the Shoot has."""
    absent = {KUBECONFIG: not has_static_kubeconfig(shoot), SSH: not has_ssh(spec(shoot))}
    return [what for what in whats if not absent.get(what)]


def _is_under_way(rotation: Mapping[str, Any]) -> bool:
    """Whether a rotation with one step has begun, and has not been completed."""
    initiated, completed = (time_or_none(rotation.get(f"last{name}Time")) for name in ("Initiation", "Completion"))
    return initiated is not None and (completed is None or completed < initiated)


_PATH = ("status", "credentials", "rotation")


def _rotations(status: Object) -> dict[str, Any]:
    return dict(mapping_at(status, *_PATH[1:]))


def _fields(shoot: Object, rotation: Object) -> Object:
    if rotation == mapping_at(shoot, *_PATH):
        return {}
    return {"credentials": {**mapping_at(shoot, *_PATH[:-1]), "rotation": rotation or None}}
