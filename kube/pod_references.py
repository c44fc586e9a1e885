"""Secrets and ConfigMaps that the spec of a Pod references.

They are found by the names that the Pod API gives to such fields, at any place: in volumes of all kinds, in projected
sources, in variables, and in secrets for pulling images. So new kinds of volumes are covered as well.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kube.objects import Object
from kube.resources import CONFIG_MAPS, SECRETS

_OF_USERS = frozenset({"annotations", "labels", "limits", "matchLabels", "nodeSelector", "overhead", "requests"})
"""Fields whose keys are chosen by users: a key with the name of an API field is no such field."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Reference: `holder[field]` is the name of a Secret or ConfigMap."""

    kind: str
    holder: Object
    field: str

    @property
    def name(self) -> str:
        return str(self.holder[self.field])


def slots(pod_spec: object) -> Iterator[Slot]:
    """References in undefined order. Ignores values of unexpected form. Also for parts of a spec, such as `volumes`."""
    left: list[Any] = [pod_spec]
    while left:
        part = left.pop()
        if isinstance(part, list):
            left += [each for each in part if isinstance(each, dict | list)]
            continue
        if not isinstance(part, dict):
            continue
        for field, value in part.items():
            if field == "secretName":
                yield from slot(SECRETS.kind, part, field)
            elif field.endswith("PullSecrets"):
                for each in value if isinstance(value, list) else ():
                    yield from slot(SECRETS.kind, each)
            elif isinstance(value, dict | list) and field not in _OF_USERS:
                if kind := _kind_named_by(field):
                    yield from slot(kind, value)
                left.append(value)


def _kind_named_by(field: str) -> str:
    """Kind of a reference field: `nodePublishSecretRef` refers to a Secret, `configMapKeyRef` to a ConfigMap."""
    if field in {"secret", "secretKeyRef", "secretRef"} or field.endswith("SecretRef"):
        return SECRETS.kind
    return CONFIG_MAPS.kind if field in {"configMap", "configMapKeyRef", "configMapRef"} else ""


def slot(kind: str, holder: Any, field: str = "name") -> Iterator[Slot]:
    """Reference of one holder; empty if it has no name."""
    if isinstance(holder, dict) and isinstance(holder.get(field), str) and holder[field]:
        yield Slot(kind, holder, field)
