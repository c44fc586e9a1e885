"""Visible clients that trust only the certificate authority from before a rotation: pure.

The trust of a client itself is invisible; visible are the bundles that clients read: ConfigMaps, Secrets and fields of
objects. A client of a bundle with only the old authority fails when the rotation is completed.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from components.secrets import labels as names
from components.secrets.configs import CA_CERTIFICATE
from components.secrets.rotation import newest, old_one
from components.secrets.stored import Stored
from gardener.conditions import OLD_CA_CERTIFICATE_UNUSED
from gardener.garden.rotations import AUTHORITIES, PREPARED, phase
from kube.conditions import Condition
from kube.objects import Object, key, labels, mapping, string_map, text
from kube.paths import at, mappings_at

_AUTHORITY = "ca"
_NAMED = 10
_IN_KUBECONFIG = re.compile(rb"certificate-authority-data:\s*[\"']?([A-Za-z0-9+/=]+)")
_SPACE = re.compile(rb"\s+")


def is_checked(shoot: Object) -> bool:
    """Whether the rotation is in the phase in which users exchange the authority."""
    return phase(shoot, AUTHORITIES) == PREPARED


@dataclass(frozen=True, slots=True)
class Authorities:
    """Certificates in PEM, without whitespace."""

    old: bytes
    current: bytes

    def is_old_alone(self, content: bytes) -> bool:
        """Whether a bundle or kubeconfig contains the old certificate and not the current one."""
        found = [_SPACE.sub(b"", each) for each in (content, *_embedded(content))]
        return any(self.old in each for each in found) and not any(self.current in each for each in found)


def _embedded(kubeconfig: bytes) -> Iterator[bytes]:
    for each in _IN_KUBECONFIG.findall(kubeconfig):
        yield _decoded(each)


def _decoded(encoded: str | bytes) -> bytes:
    try:
        return base64.b64decode(encoded)
    except (binascii.Error, ValueError):
        return b""


def authorities(secrets: Sequence[Stored]) -> Authorities | None:
    """Return the authorities; None if there is no old one. Args: secrets: of the secrets manager."""
    current = newest(each for each in secrets if each.config_name == _AUTHORITY)
    old = old_one(secrets, current) if current else None
    if current is None or old is None:
        return None
    of_old, of_current = (_SPACE.sub(b"", each.data.get(CA_CERTIFICATE, b"")) for each in (old, current))
    return Authorities(of_old, of_current) if of_old and of_current else None


# --- in the seed


def users_in_seed(found: Authorities, secrets: Sequence[Object], workloads: Sequence[Object]) -> Iterator[str]:
    """Args: secrets, workloads: of the Shoot's namespace; workloads: objects with a pod template."""
    stale = {key(each).name: each for each in secrets if _is_stale(found, string_map(each.get("data")))}
    for name, each in sorted(stale.items()):
        if labels(each).get(names.MANAGED_BY) != names.SECRETS_MANAGER:
            yield f"Secret {name} in the seed"
    for each in workloads:
        if mounted := sorted(_mounted(each) & stale.keys()):
            yield f"{text(each.get('kind'))} {key(each).name} in the seed, by Secret {mounted[0]}"


def _is_stale(found: Authorities, data: dict[str, str]) -> bool:
    return any(found.is_old_alone(_decoded(each)) for each in data.values())


def _mounted(workload: Object) -> set[str]:
    """Names of mounted Secrets."""
    volumes = mappings_at(workload, "spec", "template", "spec", "volumes")
    projected = (source for each in volumes for source in mappings_at(each, "projected", "sources"))
    whole = (text(at(each, "secret", "secretName")) for each in volumes)
    return {name for name in (*whole, *(text(at(each, "secret", "name")) for each in projected)) if name}


# --- in the Shoot


def is_user(found: Authorities, obj: Object) -> bool:
    """Whether a ConfigMap with bundles, or an object with `caBundle` fields, trusts only the old authority."""
    bundles = [each.encode() for each in string_map(obj.get("data")).values()]
    return any(found.is_old_alone(each) for each in (*bundles, *map(_decoded, _ca_bundles(obj))))


def _ca_bundles(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from _ca_bundles(each)
    for name, each in mapping(value).items():
        if name == "caBundle":
            yield text(each)
        elif name in _LEADS_TO_BUNDLES:
            yield from _ca_bundles(each)


_LEADS_TO_BUNDLES = {"webhooks", "clientConfig", "spec", "conversion", "webhook"}


# --- condition


def unused(users: Sequence[str], *, shoot: Object) -> Condition:
    of_type = OLD_CA_CERTIFICATE_UNUSED
    since = text(at(shoot, "status", "credentials", "rotation", AUTHORITIES, "lastInitiationFinishedTime"))
    others = f"Kubeconfigs and bundles downloaded before {since} cannot be checked; replace them, too."
    if not users:
        reported = f"No object in the seed or in the Shoot trusts only the old certificate authority. {others}"
        return Condition(of_type, "True", "NoUsersOfOldCACertificate", reported)
    named = ", ".join(islice(users, _NAMED))
    more = f" and {len(users) - _NAMED} more" if len(users) > _NAMED else ""
    reported = (
        "These trust only the old certificate authority and will fail once its rotation is completed; update "
        f"them: {named}{more}."
    )
    return Condition(of_type, "False", "UsersOfOldCACertificate", f"{reported} {others}")
