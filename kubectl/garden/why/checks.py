"""Remedies of conditions and constraints that are not good.

Each type of a condition has a remedy. Its reason adds the command that shows the object in question, in the seed or in
the Shoot, or that corrects it; the message is searched for the name of this object.
"""

import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import NamedTuple

from gardener import conditions as types
from gardener import keys
from gardener.api.garden import SHOOTS
from kube.objects import Key, Object, key, text
from kube.paths import at
from kubectl.garden.why.finding import command, one_line

Remedy = Callable[[Object], str]
"""Returns the remedy of a condition."""

_OF_SHOOTS = {
    types.API_SERVER_AVAILABLE: (
        "check whether webhooks or clients overload it; if it does not respond at all, contact the operator of its Seed"
    ),
    types.CONTROL_PLANE_HEALTHY: "it is restored automatically; if the problem persists, contact the operator of its "
    "Seed",
    types.OBSERVABILITY_COMPONENTS_HEALTHY: "only monitoring is affected; if the problem persists, contact the "
    "operator of its Seed",
    types.EVERY_NODE_READY: "see the nodes that the message names: kubectl describe node",
    types.SYSTEM_COMPONENTS_HEALTHY: "see the object that the message names, in the Shoot: kubectl describe KIND NAME",
    types.HIBERNATION_POSSIBLE: "correct or remove the webhook that the message names, in the Shoot",
    types.MAINTENANCE_PRECONDITIONS_SATISFIED: "correct or remove the webhook that the message names, in the Shoot",
    types.CRDS_WITH_PROBLEMATIC_CONVERSION_WEBHOOKS: (
        "in the Shoot, write all their objects in one version, and take the others out of status.storedVersions"
    ),
}
_OF_SEEDS = {
    types.GARDENLET_READY: "see whether the gardenlet runs on the Seed, and reaches the garden",
    types.EXTENSIONS_READY: "check the ControllerInstallations of the Seed: kubectl get controllerinstallations",
    types.BACKUP_BUCKETS_READY: "see the last error of the BackupBucket: kubectl get backupbuckets",
    types.SEED_SYSTEM_COMPONENTS_HEALTHY: "see the ManagedResources on the Seed: kubectl mr get -A",
    types.GARDENLET_CERTIFICATE: "see the Events of the Seed, and the log of its gardenlet",
}
GARDENLET = _OF_SEEDS[types.GARDENLET_READY]


class _Look(NamedTuple):
    """Attributes:
    reasons: patterns of reasons.
    command: has places for the fields of `_OBJECT`, the Shoot (`shoot`) and its namespace in the seed (`seed`).
    replaces: whether that is all there is to do.
    kind: kind of the named object; empty for any.
    mentions: parts of the message, where different problems have one reason; one of them is needed.
    """

    reasons: tuple[str, ...]
    command: str
    replaces: bool = False
    kind: str = ""
    mentions: tuple[str, ...] = ("",)


_OBJECT = re.compile(
    r"""(?=(?P<kind>\w+)).*?(?:ManagedResource\ |["'(])(?:(?P<namespace>[a-z0-9][a-z0-9-]*)/)?
    (?P<name>[a-z0-9][a-z0-9.:-]*)""",
    re.DOTALL | re.VERBOSE,
)
"""The object that a message names, which is no option. Nothing else of a message gets into a command."""
_DESCRIBE = "in the seed: kubectl describe {kind} {name} -n {seed}"
_MANAGED = "in the seed: kubectl mr describe {name} -n {seed}"
_LOOKS = (
    _Look(("ConstraintNotChecked", "ConditionNotChecked"), "it is checked once the control plane runs", replaces=True),
    _Look(
        ("ConditionCheckError",),
        "it is checked once the control plane runs",
        replaces=True,
        mentions=("control plane has not been fully created", "control plane is not running"),
    ),
    _Look(("HibernatedControlPlaneScaled", "DeploymentUnhealthy", "StatefulSetUnhealthy", "EtcdUnhealthy"), _DESCRIBE),
    _Look(("*UnhealthyReport",), "in the seed: kubectl describe {kind} {name}{of}"),
    _Look(
        ("*OutdatedHealthCheckReport",),
        "see whether the extension runs: kubectl get controllerinstallations",
        replaces=True,
    ),
    _Look(("APIServerDown", "HealthzRequest*"), "in the seed: kubectl describe deployment kube-apiserver -n {seed}"),
    _Look(("*Missing",), "to have it made again: {reconcile}", mentions=("Missing required ",)),
    _Look(
        ("ConditionCheckError",),
        "in the seed, see whether its resource manager runs, which renews the token in Secret gardener: "
        "kubectl describe deployment gardener-resource-manager -n {seed}",
        replaces=True,
        mentions=("ClientSet", "Shoot client"),
    ),
    _Look(("*",), "in the Shoot: kubectl describe node {name}", replaces=True, kind="Node"),
    _Look(("MissingNodes",), "in the seed: kubectl get machines -n {seed}", replaces=True),
    _Look(("ProblematicWebhooks", "RemediatedWebhooks"), "kubectl edit {kind} {name}"),
    _Look(("ExpiringCACertificates",), "rotate them: {rotate}", replaces=True),
    _Look(
        ("UsersOfOldCACertificate",),
        "have each of them trust the CAs in ConfigMap {shoot}.ca-cluster, then: {complete}",
        replaces=True,
    ),
    _Look(("OutdatedStatus", "ProgressingRolloutStuck", "MissingManagedResourceCondition"), _MANAGED),
    _Look(
        ("Apply*", "DecodingFailed", "Deletion*", "*Unhealthy", "*Progressing"), "in the seed: kubectl mr get -n {seed}"
    ),
)
"""The first one that fits counts."""


def of_shoot(shoot: Object) -> Remedy:
    own, seed = key(shoot), text(at(shoot, "status", "technicalID"))

    def remedy(condition: Object) -> str:
        general = _OF_SHOOTS.get(text(condition.get("type")), "")
        found = _seen(condition, own, seed)
        if found is None:
            return general
        see, replaces = found
        return see if replaces or not general else f"{general}; {see}"

    return remedy


def of_seed(condition: Object) -> str:
    return _OF_SEEDS.get(text(condition.get("type")), "")


def _seen(condition: Object, own: Key, seed: str) -> tuple[str, bool] | None:
    reason, message = one_line(condition.get("reason")), one_line(condition.get("message"))
    found = _OBJECT.match(message)
    kind, namespace, name = found.groups("") if found else ("", "", "")
    known = {"kind": kind.lower(), "name": name, "namespace": namespace, "seed": seed}
    for look in _LOOKS:
        if (
            any(fnmatchcase(reason, pattern) for pattern in look.reasons)
            and look.kind in ("", kind)
            and any(part in message for part in look.mentions)
            and all(value or f"{{{field}}}" not in look.command for field, value in known.items())
            # Objects in the seed that belong to a Shoot are in its namespace, and named without it.
            and not (namespace and look.command == _DESCRIBE)
        ):
            command = look.command.format(
                **known,
                of=f" -n {namespace}" if namespace else "",
                reconcile=_annotated(own, keys.OPERATION_RECONCILE),
                rotate=_annotated(own, "rotate-ca-start"),
                complete=_annotated(own, "rotate-ca-complete"),
                shoot=own.name,
            )
            return command, look.replaces
    return None


def _annotated(own: Key, operation: str) -> str:
    return command("annotate", SHOOTS, own, f"{keys.OPERATION}={operation}")
