"""What to do about conditions and constraints that are not good.

Each type has a remedy. Many checks name an object in their message: then the command follows that shows it, in the
seed or in the Shoot, or that corrects it.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from gardener import conditions as types
from gardener import keys
from gardener.api.garden import SHOOTS
from kube.objects import Key, Object, key, text
from kube.paths import at
from kubectl.garden.why.finding import command, one_line

Remedy = Callable[[Object], str]
"""Of a condition."""

_OF_SHOOTS = {
    types.API_SERVER_AVAILABLE: (
        "look whether webhooks or clients overload it; if it does not answer at all, ask the operator of its Seed"
    ),
    types.CONTROL_PLANE_HEALTHY: "it is restored by itself; if it stays, ask the operator of its Seed",
    types.OBSERVABILITY_COMPONENTS_HEALTHY: "only monitoring is affected; if it stays, ask the operator of its Seed",
    types.EVERY_NODE_READY: "see the nodes that the message names: kubectl describe node",
    types.SYSTEM_COMPONENTS_HEALTHY: "see the object that the message names, in the Shoot: kubectl describe",
    types.HIBERNATION_POSSIBLE: "correct or remove the webhook that the message names, in the Shoot",
    types.MAINTENANCE_PRECONDITIONS_SATISFIED: "correct or remove the webhook that the message names, in the Shoot",
    types.CRDS_WITH_PROBLEMATIC_CONVERSION_WEBHOOKS: (
        "in the Shoot, write all their objects in one version, and take the others out of status.storedVersions"
    ),
}
_OF_SEEDS = {
    types.GARDENLET_READY: "see whether the gardenlet runs on the Seed, and reaches the garden",
    types.EXTENSIONS_READY: "see what the ControllerInstallations of the Seed say: kubectl get controllerinstallations",
    types.BACKUP_BUCKETS_READY: "see the last error of the BackupBucket: kubectl get backupbuckets",
    types.SEED_SYSTEM_COMPONENTS_HEALTHY: "see the ManagedResources on the Seed: kubectl mr get -A",
    types.GARDENLET_CERTIFICATE: "see the Events of the Seed, and the log of its gardenlet",
}
GARDENLET = _OF_SEEDS[types.GARDENLET_READY]


class _Check(NamedTuple):
    """Attributes:
    said: what its reason and message look like.
    see: a command, with what is found there, the Shoot (`shoot`), and its namespace in the seed (`seed`).
    replaces: whether that is all there is to do.
    """

    said: re.Pattern[str]
    see: str
    replaces: bool = False


def _check(said: str, see: str, *, replaces: bool = False) -> _Check:
    return _Check(re.compile(said, re.DOTALL), see, replaces)


_DESCRIBE = "in the seed: kubectl describe {kind} {name} -n {seed}"
_NAME = r"(?P<name>[a-z0-9.:-]+)"
"""Of what else a message has, nothing gets into a command."""
_NAMED = f'"{_NAME}"'
_CHECKS = (
    _check(rf"HibernatedControlPlaneScaled: (?P<kind>\w+) {_NAMED}", _DESCRIBE),
    _check(rf"(?P<kind>Deployment|StatefulSet|Etcd)Unhealthy: [^\"]*{_NAMED}", _DESCRIBE),
    _check(
        rf"\w+UnhealthyReport: (?P<kind>\w+) extension \(((?P<namespace>[a-z0-9-]+)/)?{_NAME}\)",
        "in the seed: kubectl describe {kind} {name}{of}",
    ),
    _check(
        r"\w+OutdatedHealthCheckReport: ",
        "see whether the extension runs: kubectl get controllerinstallations",
        replaces=True,
    ),
    _check(r"(APIServerDown|HealthzRequest\w+): ", "in the seed: kubectl describe deployment kube-apiserver -n {seed}"),
    _check(r"\w+Missing: Missing required ", "to have it made again: {reconcile}"),
    _check(
        r"ConditionCheckError: .*(ClientSet|Shoot client)",
        "in the seed, see whether its resource manager runs, which renews the token in Secret gardener: "
        "kubectl describe deployment gardener-resource-manager -n {seed}",
        replaces=True,
    ),
    _check(rf"\w+: Node {_NAMED}", "in the Shoot: kubectl describe node {name}", replaces=True),
    _check(r"MissingNodes: ", "in the seed: kubectl get machines -n {seed}", replaces=True),
    _check(rf"(Problematic|Remediated)Webhooks: (?P<kind>\w+) {_NAMED}", "kubectl edit {kind} {name}"),
    _check(r"ExpiringCACertificates: ", "rotate them: {rotate}", replaces=True),
    _check(
        r"UsersOfOldCACertificate: ",
        "have each of them trust what is in ConfigMap {shoot}.ca-cluster now, then: {complete}",
        replaces=True,
    ),
    _check(rf"OutdatedStatus: .*'[^'/]*/{_NAME}'", "in the seed: kubectl mr describe {name} -n {seed}"),
    _check(rf"\w+: ManagedResource {_NAME}", "in the seed: kubectl mr describe {name} -n {seed}"),
    _check(
        r"(ApplyFailed|ApplyProgressing|DecodingFailed|Deletion\w+|\w+(Unhealthy|Progressing)): ",
        "in the seed: kubectl mr get -n {seed}",
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
    said = f"{one_line(condition.get('reason'))}: {one_line(condition.get('message'))}"
    for each in _CHECKS:
        if (found := each.said.match(said)) is None:
            continue
        if "{seed}" in each.see and not seed:
            return None
        names = {name: value or "" for name, value in found.groupdict().items()}
        kind, namespace = names.pop("kind", "").lower(), names.pop("namespace", "")
        see = each.see.format(
            kind=kind,
            seed=seed,
            of=f" -n {namespace}" if namespace else "",
            reconcile=_annotated(own, keys.OPERATION_RECONCILE),
            rotate=_annotated(own, "rotate-ca-start"),
            complete=_annotated(own, "rotate-ca-complete"),
            shoot=own.name,
            **{"name": "", **names},
        )
        return see, each.replaces
    return None


def _annotated(own: Key, operation: str) -> str:
    return command("annotate", SHOOTS, own, f"{keys.OPERATION}={operation}")
