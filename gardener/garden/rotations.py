"""Rotations of a Shoot's credentials: which operations ask for them, and how far each of them has got.

    Preparing -> Prepared -> Completing -> Completed

Nodes are rolled out while a rotation is prepared, unless their user asks for that later, pool by pool:

    PreparingWithoutWorkersRollout -> WaitingForWorkersRollout -> Prepared

Phases are not a closed set.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kube.objects import Object, text
from kube.paths import at, mappings_at

AUTHORITIES, SERVICE_ACCOUNT_KEY, ENCRYPTION_KEY = "certificateAuthorities", "serviceAccountKey", "etcdEncryptionKey"
"""As the status calls what is rotated in two steps, between which users exchange what they have."""
KUBECONFIG, SSH, OBSERVABILITY = "kubeconfig", "sshKeypair", "observability"
"""As the status calls what is rotated in one step."""
PREPARING, PREPARED, COMPLETING, COMPLETED = "Preparing", "Prepared", "Completing", "Completed"
PREPARING_WITHOUT_ROLLOUT, WAITING_FOR_ROLLOUT = "PreparingWithoutWorkersRollout", "WaitingForWorkersRollout"
PREPARES = (PREPARING, PREPARING_WITHOUT_ROLLOUT)
"""Phases in which new credentials are made."""
ON_NODES = (AUTHORITIES, SERVICE_ACCOUNT_KEY)
"""By what is made of these, nodes and their pods have access: other nodes have new ones."""
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
"""What an operation `rotate-<this>-start` or `-complete` is about."""
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
    """What an operation asks for, as the status calls it.

    Attributes:
        starts: in two steps.
        keeps_nodes: whether nodes stay as they are when it starts.
        completes: in two steps.
        renews: in one step.
        pools: whose nodes are to be rolled out now.
    """

    starts: Sequence[str] = ()
    keeps_nodes: bool = False
    completes: Sequence[str] = ()
    renews: Sequence[str] = ()
    pools: Sequence[str] = ()


def asked(operation: str) -> Asked | None:
    """None: it is about no rotation."""
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
    """Empty: it was never rotated."""
    return text(at(shoot, "status", "credentials", "rotation", what, "phase"))


def starts(operation: str) -> bool:
    """Whether it starts a rotation in two steps."""
    return TWO_STEPS.get(operation, ("", ""))[1] in _STARTS


def pending_pools(shoot: Object, what: str) -> dict[str, str]:
    """Worker pools whose nodes are still of before a rotation: when the rotation started of which they are, if any."""
    found = mappings_at(shoot, "status", "credentials", "rotation", what, PENDING)
    return {text(each.get("name")): text(each.get("lastInitiationTime")) for each in found}


def due_pools(shoot: Object) -> set[str]:
    """Worker pools whose nodes may be rolled out."""
    return {
        pool for what in ON_NODES if phase(shoot, what) == WAITING_FOR_ROLLOUT for pool in pending_pools(shoot, what)
    }


def rotations_of_nodes(shoot: Object, pool: str) -> tuple[str, ...]:
    """When the rotations started of which the nodes of a worker pool are to be; empty: nothing was ever rotated."""
    found = []
    for what in ON_NODES:
        started = text(at(shoot, "status", "credentials", "rotation", what, "lastInitiationTime"))
        found.append(pending_pools(shoot, what).get(pool, started))
    return tuple(each for each in found if each)
