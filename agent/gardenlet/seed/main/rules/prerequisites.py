"""Prerequisites of a seed's reconciliation."""

import base64
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gardener import keys
from gardener.basic_auth import line_of
from gardener.conditions import HEALTHY, INSTALLED, PROGRESSING
from gardener.garden.extensions import needed_by_seed, provided
from kube.objects import Object, condition, key, labels, string_map, text
from kube.paths import at
from kube.resources import SECRETS

ROLE_GLOBAL_MONITORING = "global-monitoring"
_AUTH = "auth"
_ALERTING = "alerting"
_ISSUER = "shoot-service-account-issuer"
_CONTROL_PLANE_CERTIFICATE = "controlplane-cert"
_AT_MOST_ONE = (ROLE_GLOBAL_MONITORING, _ALERTING, _ISSUER)
OLDEST_KUBERNETES = (1, 28)
_VERSION = re.compile(r"v?(\d+)\.(\d+)")
_READY = {INSTALLED: "True", HEALTHY: "True", PROGRESSING: "False"}


class PrerequisiteMissing(ValueError):
    """A prerequisite that others must provide is missing."""


# --- Secrets of the garden


@dataclass(frozen=True, slots=True)
class GardenSecrets:
    """Required Secrets of the Seed's namespace in the garden."""

    monitoring: Object
    """Secret with the users of the monitoring."""


def garden_secrets(secrets: Iterable[Object]) -> GardenSecrets:
    """Select the required Secrets.

    Raises:
        PrerequisiteMissing: one is missing or ambiguous.
    """
    by_role: dict[str, list[Object]] = {}
    for secret in secrets:
        by_role.setdefault(labels(secret).get(keys.ROLE, ""), []).append(secret)
    count = Counter({role: len(having) for role, having in by_role.items()})
    if not count[keys.ROLE_INTERNAL_DOMAIN]:
        raise PrerequisiteMissing("need an internal domain secret but found none")
    for role in (keys.ROLE_INTERNAL_DOMAIN, *_AT_MOST_ONE):
        if count[role] > 1:
            raise PrerequisiteMissing(f"need at most one secret with the role {role} but found {count[role]}")
    if not count[ROLE_GLOBAL_MONITORING]:
        raise PrerequisiteMissing("global monitoring secret not found in seed namespace")
    return GardenSecrets(monitoring=by_role[ROLE_GLOBAL_MONITORING][0])


def monitoring_copy(secret: Object) -> Object:
    """Secret with the users of the monitoring, for the seed; with a file for web servers if the given one has none."""
    data = string_map(secret.get("data"))
    if not data.get(_AUTH) and data.get("username") and data.get("password"):
        user, password = (base64.b64decode(data[name]).decode(errors="replace") for name in ("username", "password"))
        data[_AUTH] = base64.b64encode(line_of(user, password).encode()).decode()
    meta = {
        "name": f"seed-{key(secret).name}",
        "namespace": "garden",
        "labels": {keys.NAMESPACE_PURPOSE: "global-monitoring-secret-replica"},
    }
    return {
        **SECRETS.type_meta,
        "metadata": meta,
        "type": text(secret.get("type")) or "Opaque",
        "data": data,
    }


def wildcard_certificate(secrets: Sequence[Object]) -> str:
    """Name of the certificate for all names below the seed's ingress domain; empty if there is none.

    Raises:
        PrerequisiteMissing: there are several.
    """
    if len(secrets) > 1:
        raise PrerequisiteMissing(
            f"need at most one secret with the label {WILDCARD_SELECTOR} but found {len(secrets)}"
        )
    return key(secrets[0]).name if secrets else ""


WILDCARD_SELECTOR = f"{keys.ROLE}={_CONTROL_PLANE_CERTIFICATE}"


# --- the cluster


def demand_version(version: str) -> None:
    """Check the version of Kubernetes.

    Raises:
        PrerequisiteMissing: it is too old.
    """
    found = _VERSION.match(version)
    if found is not None and (int(found[1]), int(found[2])) < OLDEST_KUBERNETES:
        oldest = ".".join(map(str, OLDEST_KUBERNETES))
        raise PrerequisiteMissing(f"the Kubernetes version of the Seed cluster must be at least {oldest}")


def has_vertical_pod_autoscaler(seed: Object) -> bool:
    """Whether the gardenlet installs the vertical pod autoscaler; true unless the Seed disables it."""
    return at(seed, "spec", "settings", "verticalPodAutoscaler", "enabled") is not False


# --- extensions


def unready_extensions(seed: Object, *, installations: Iterable[Object], registrations: Mapping[str, Object]) -> str:
    """Message with required extensions that are not installed or not healthy; empty if none."""
    ready = {
        each
        for installation in installations
        if _is_ready(installation)
        and (registration := registrations.get(text(at(installation, "spec", "registrationRef", "name")))) is not None
        for each in provided(registration)
    }
    unready = sorted({each for each in needed_by_seed(seed) if each.type} - ready)
    return f"extension controllers missing or unready: {', '.join(map(str, unready))}" if unready else ""


def _is_ready(installation: Object) -> bool:
    return all((condition(installation, of_type) or {}).get("status") == status for of_type, status in _READY.items())
