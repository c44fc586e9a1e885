"""Secrets and ConfigMaps that the spec of a Pod names.

They are found by the names that the Pod API gives to such fields, wherever they stand: in volumes of all kinds, what is
projected into them, variables, and secrets for pulling images. So a kind of volume that is new is read as well.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kube.objects import Object
from kube.resources import CONFIG_MAPS, SECRETS

_OF_USERS = frozenset({"annotations", "labels", "limits", "matchLabels", "nodeSelector", "overhead", "requests"})
"""Fields whose keys are chosen by users: one that is called like a field of the API is none."""


@dataclass(frozen=True, slots=True)
class Slot:
    """`holder[field]` is the name of a Secret or ConfigMap."""

    kind: str
    holder: Object
    field: str

    @property
    def name(self) -> str:
        return str(self.holder[self.field])


def slots(pod_spec: object) -> Iterator[Slot]:
    """In no certain order. What is not of the expected form names nothing. Also for parts of a spec, as `volumes`."""
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
    """`nodePublishSecretRef` refers to a Secret, `configMapKeyRef` to a ConfigMap."""
    if field in {"secret", "secretKeyRef", "secretRef"} or field.endswith("SecretRef"):
        return SECRETS.kind
    return CONFIG_MAPS.kind if field in {"configMap", "configMapKeyRef", "configMapRef"} else ""


def slot(kind: str, holder: Any, field: str = "name") -> Iterator[Slot]:
    """One, if the name is there."""
    if isinstance(holder, dict) and isinstance(holder.get(field), str) and holder[field]:
        yield Slot(kind, holder, field)
