"""Rotations of a Shoot's credentials: operations that request them, and their phases.

    Preparing -> Prepared -> Completing -> Completed

Nodes are rolled out while a rotation is prepared, unless their user requests that later, pool by pool:

    PreparingWithoutWorkersRollout -> WaitingForWorkersRollout -> Prepared

Phases are not a closed set.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kube.objects import Object, text
from kube.paths import at, mappings_at

AUTHORITIES, SERVICE_ACCOUNT_KEY, ENCRYPTION_KEY = "certificateAuthorities", "serviceAccountKey", "etcdEncryptionKey"
"""Names in the status of rotations in two steps, between which users exchange their credentials."""
KUBECONFIG, SSH, OBSERVABILITY = "kubeconfig", "sshKeypair", "observability"
"""Names in the status of rotations in one step."""
PREPARING, PREPARED, COMPLETING, COMPLETED = "Preparing", "Prepared", "Completing", "Completed"
PREPARING_WITHOUT_ROLLOUT, WAITING_FOR_ROLLOUT = "PreparingWithoutWorkersRollout", "WaitingForWorkersRollout"
PREPARES = (PREPARING, PREPARING_WITHOUT_ROLLOUT)
"""Phases in which new credentials are created."""
ON_NODES = (AUTHORITIES, SERVICE_ACCOUNT_KEY)
"""Rotations of credentials that give nodes and their pods access: nodes with new ones replace the others."""
PENDING = "pendingWorkersRollouts"
START, START_WITHOUT_ROLLOUT, COMPLETE = "start", "start-without-workers-rollout", "complete"
_STARTS = (START, START_WITHOUT_ROLLOUT)
_ROLLOUT = "rotate-rollout-workers="

ROTATES: Mapping[str, Sequence[str]] = {
    "credentials": (AUTHORITIES, SERVICE_ACCOUNT_KEY, ENCRYPTION_KEY),
    "ca": (AUTHORITIES,),
    "serviceaccount-key": (SERVICE_ACCOUNT_KEY,),
    "etcd-encryption-key": (ENCRYPTION_KEY,),
}
"""Rotations that an operation `rotate-<this>-start` or `-complete` includes."""
TWO_STEPS: Mapping[str, tuple[str, str]] = {
    f"rotate-{what}-{step}": (what, step)
    for what, rotated in ROTATES.items()
    for step in (*_STARTS, COMPLETE)
    if step != START_WITHOUT_ROLLOUT or set(rotated) & set(ON_NODES)
}
ONE_STEP: Mapping[str, str] = {
    "rotate-ssh-keypair": SSH,
    "rotate-kubeconfig-credentials": KUBECONFIG,
    "rotate-observability-credentials": OBSERVABILITY,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Rotations that an operation requests, by their names in the status.

    Attributes:
        starts: in two steps.
        keeps_nodes: whether nodes are not rolled out when it starts.
        completes: in two steps.
        renews: in one step.
        pools: worker pools that are rolled out now.
    """

    starts: Sequence[str] = ()
    keeps_nodes: bool = False
    completes: Sequence[str] = ()
    renews: Sequence[str] = ()
    pools: Sequence[str] = ()


def requested(operation: str) -> Asked | None:
    """Rotations that an operation requests; None if it requests none."""
    if operation in ONE_STEP:
        return Asked(renews=(ONE_STEP[operation],))
    if operation.startswith(_ROLLOUT):
        pools = [each for each in operation.removeprefix(_ROLLOUT).split(",") if each]
        return Asked(pools=pools) if pools else None
    what, step = TWO_STEPS.get(operation, ("", ""))
    if not what:
        return None
    if step == COMPLETE:
        return Asked(completes=ROTATES[what])
    return Asked(
        starts=ROTATES[what],
        keeps_nodes=step == START_WITHOUT_ROLLOUT,
        renews=(KUBECONFIG, SSH, OBSERVABILITY) if what == "credentials" else (),
    )


def phase(shoot: Object, what: str) -> str:
    """Phase of a rotation; empty if it never started."""
    return text(at(shoot, "status", "credentials", "rotation", what, "phase"))


def in_progress(shoot: Object) -> str:
    """Rotations of which a step has begun and not ended, with their phases; empty if there are none."""
    phases = {what: phase(shoot, what) for what in ROTATES["credentials"]}
    return ", ".join(f"{what}: {found}" for what, found in phases.items() if found in {*PREPARES, COMPLETING})


def starts(operation: str) -> bool:
    """Whether an operation starts a rotation in two steps."""
    return TWO_STEPS.get(operation, ("", ""))[1] in _STARTS


def pending_pools(shoot: Object, what: str) -> dict[str, str]:
    """Pools whose nodes predate the rotation, with the start of the rotation they come from, if any."""
    found = mappings_at(shoot, "status", "credentials", "rotation", what, PENDING)
    return {text(each.get("name")): text(each.get("lastInitiationTime")) for each in found}


def due_pools(shoot: Object) -> set[str]:
    """Worker pools whose nodes may be rolled out."""
    return {
        pool for what in ON_NODES if phase(shoot, what) == WAITING_FOR_ROLLOUT for pool in pending_pools(shoot, what)
    }


def rotations_of_nodes(shoot: Object, pool: str) -> tuple[str, ...]:
    """Starts of the latest rotations that apply to the nodes of a worker pool; empty if there were none."""
    found = []
    for what in ON_NODES:
        started = text(at(shoot, "status", "credentials", "rotation", what, "lastInitiationTime"))
        found.append(pending_pools(shoot, what).get(pool, started))
    return tuple(each for each in found if each)
