"""Rotations of a Shoot's credentials: which operations ask for them, and how far each of them has got.

    Preparing -> Prepared -> Completing -> Completed

Phases are not a closed set: nodes that are not rolled out together with a rotation add others before `Prepared`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kube.objects import Object, text
from kube.paths import at

AUTHORITIES, SERVICE_ACCOUNT_KEY, ENCRYPTION_KEY = "certificateAuthorities", "serviceAccountKey", "etcdEncryptionKey"
"""As the status calls what is rotated in two steps, between which users exchange what they have."""
KUBECONFIG, SSH, OBSERVABILITY = "kubeconfig", "sshKeypair", "observability"
"""As the status calls what is rotated in one step."""
PREPARING, PREPARED, COMPLETING, COMPLETED = "Preparing", "Prepared", "Completing", "Completed"
PREPARING_WITHOUT_ROLLOUT, WAITING_FOR_ROLLOUT = "PreparingWithoutWorkersRollout", "WaitingForWorkersRollout"
START, COMPLETE = "start", "complete"

ROTATES: Mapping[str, Sequence[str]] = {
    "credentials": (AUTHORITIES, SERVICE_ACCOUNT_KEY, ENCRYPTION_KEY),
    "ca": (AUTHORITIES,),
    "serviceaccount-key": (SERVICE_ACCOUNT_KEY,),
    "etcd-encryption-key": (ENCRYPTION_KEY,),
}
"""What an operation `rotate-<this>-start` or `-complete` is about."""
TWO_STEPS: Mapping[str, tuple[str, str]] = {
    f"rotate-{what}-{step}": (what, step) for what in ROTATES for step in (START, COMPLETE)
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
        completes: the same.
        renews: in one step.
    """

    starts: Sequence[str] = ()
    completes: Sequence[str] = ()
    renews: Sequence[str] = ()


def asked(operation: str) -> Asked | None:
    """None: it is about no rotation."""
    if operation in ONE_STEP:
        return Asked(renews=(ONE_STEP[operation],))
    what, step = TWO_STEPS.get(operation, ("", ""))
    if not what:
        return None
    if step == COMPLETE:
        return Asked(completes=ROTATES[what])
    return Asked(starts=ROTATES[what], renews=(KUBECONFIG, SSH, OBSERVABILITY) if what == "credentials" else ())


def phase(shoot: Object, what: str) -> str:
    """Empty: it was never rotated."""
    return text(at(shoot, "status", "credentials", "rotation", what, "phase"))
