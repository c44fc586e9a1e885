"""ManagedResource for a rendered chart.

Each manifest is a key of the Secret. A manifest without injected access stays as rendered, byte by byte.
"""

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from agent.gardenlet.common.charts.rules.output import Manifest
from agent.gardenlet.extensions.controller_installation.install.rules.injection import Injection
from gardener import keys
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.references import inject_annotations, make_unique
from kube.objects import Object, key, text
from kube.resources import SECRETS
from kube.yaml import Budget, DialectError, load

NAMESPACE = "garden"
_CLASS = "seed"
_VALUES = 500_000
_CHARACTERS = 64 << 20
_LONGEST_KEY = 253
_SUFFIX = ".yaml"
_NOT_IN_KEYS = re.compile(r"[^-._a-zA-Z0-9]")


@dataclass(frozen=True, slots=True)
class Rendered:
    """Objects of a rendered chart.

    Attributes:
        elsewhere: workloads in other namespaces, which can't access the garden; empty if none shall.
    """

    secret: Object
    managed_resource: Object
    elsewhere: list[str]


def rendered(name: str, manifests: Sequence[Manifest], injection: Injection) -> Rendered:
    """Convert manifests of the installation `name` to a Secret and a ManagedResource."""
    budget = Budget(_VALUES, _CHARACTERS)
    data: dict[str, bytes] = {}
    objects: list[Object] = []
    for manifest in manifests:
        try:
            obj = load(manifest.text, budget=budget)
        except DialectError:  # the resource manager reports it
            obj = None
        if not isinstance(obj, dict):
            data[_free(_key(manifest.file, "", ""), data)] = manifest.text.encode()
            continue
        objects.append(obj)
        changed = injection.into(obj)
        content = manifest.text.encode() if changed is obj else orjson.dumps(changed, option=orjson.OPT_SORT_KEYS)
        data[_free(_key(manifest.file, text(obj.get("kind")), key(obj).name), data)] = content
    secret = make_unique(
        {
            **SECRETS.type_meta,
            "metadata": {"name": name, "namespace": NAMESPACE},
            "type": "Opaque",
            "data": {each: base64.b64encode(content).decode() for each, content in data.items()},
        }
    )
    return Rendered(secret, managed_resource(name, key(secret).name), injection.elsewhere(objects))


def managed_resource(name: str, secret: str) -> Object:
    return inject_annotations(
        {
            **MANAGED_RESOURCES.type_meta,
            "metadata": {
                "name": name,
                "namespace": NAMESPACE,
                "labels": {keys.CONTROLLER_INSTALLATION_NAME: name},
            },
            "spec": {"class": _CLASS, "secretRefs": [{"name": secret}]},
        }
    )


def _key(file: str, kind: str, name: str) -> str:
    parts = [file.removesuffix(_SUFFIX), *(each for each in (kind.lower(), name) if each)]
    return _NOT_IN_KEYS.sub("_", "_".join(parts))[: _LONGEST_KEY - len(_SUFFIX)]


def _free(stem: str, taken: dict[str, bytes]) -> str:
    """Return a key that no other manifest has."""
    found, count = f"{stem}{_SUFFIX}", 1
    while found in taken:
        count += 1
        more = f"-{count}{_SUFFIX}"
        found = f"{stem[: _LONGEST_KEY - len(more)]}{more}"
    return found
