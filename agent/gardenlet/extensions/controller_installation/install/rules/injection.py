"""Injection of garden access into workloads of an extension: a kubeconfig, and the name of their Seed.

Only workloads in the namespace of the extension are changed, since the Secrets are in it.
"""

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from agent.gardenlet.extensions.controller_installation.install.rules.access import (
    ACCESS_SECRET,
    DIRECTORY,
    KUBECONFIG,
    TOKEN,
)
from gardener import keys
from gardener.references import SECRET, annotation_key
from kube.objects import Object, key, labels, mapping, mappings
from kube.paths import at

GARDEN_KUBECONFIG = "GARDEN_KUBECONFIG"
SEED_NAME = "SEED_NAME"
_VOLUME = "garden-kubeconfig"
_MODE = 0o644
_TEMPLATE, _JOB_TEMPLATE = ("spec", "template"), ("spec", "jobTemplate")
_TEMPLATES = {
    ("apps", "Deployment"): _TEMPLATE,
    ("apps", "StatefulSet"): _TEMPLATE,
    ("apps", "DaemonSet"): _TEMPLATE,
    ("apps", "ReplicaSet"): _TEMPLATE,
    ("batch", "Job"): _TEMPLATE,
    ("batch", "CronJob"): (*_JOB_TEMPLATE, *_TEMPLATE),
}
_ALWAYS_WRITTEN: dict[str, Object] = {
    "StatefulSet": {"spec": {"serviceName": ""}, "status": {"replicas": 0, "availableReplicas": 0}},
    "DaemonSet": {
        "status": dict.fromkeys(
            ("currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled", "numberReady"), 0
        )
    },
    "ReplicaSet": {"status": {"replicas": 0}},
}
"""Fields that Go programs always serialize; equal output prevents rollouts when the gardenlet is replaced."""


@dataclass(frozen=True, slots=True)
class Injection:
    """Injected data.

    Attributes:
        kubeconfig: name of the Secret with the kubeconfig; empty for no access.
    """

    namespace: str
    kubeconfig: str
    seed: str

    def into(self, obj: Object) -> Object:
        """Return the object, changed if it is a workload in the namespace of the extension."""
        path = template_path(obj)
        if path is None or key(obj).namespace != self.namespace or not mappings(at(obj, *path, "spec", "containers")):
            return obj
        changed = copy.deepcopy(obj)
        template = at(changed, *path)
        pod = template["spec"]
        containers = [*mappings(pod.get("initContainers")), *mappings(pod.get("containers"))]
        if self._gives_access(obj) and not any(_has(container, GARDEN_KUBECONFIG) for container in containers):
            _add(pod, "volumes", self._volume())
            for container in containers:
                _add(container, "volumeMounts", {"name": _VOLUME, "mountPath": DIRECTORY, "readOnly": True})
                _set(container, GARDEN_KUBECONFIG, f"{DIRECTORY}/{KUBECONFIG}")
            for part in (changed, at(changed, *_JOB_TEMPLATE), template):
                if isinstance(part, dict):
                    _refer(part, self.kubeconfig)
        for container in containers:
            _set(container, SEED_NAME, self.seed)
        return _over(_ALWAYS_WRITTEN.get(obj["kind"], {}), changed)

    def _gives_access(self, obj: Object) -> bool:
        return bool(self.kubeconfig) and labels(obj).get(keys.INJECT_GARDEN_KUBECONFIG) != "false"

    def elsewhere(self, objects: Iterable[Object]) -> list[str]:
        """Workloads that would have access in the namespace, and are outside of it."""
        return [
            f"{obj['kind']} {key(obj).namespace or 'default'}/{key(obj).name}"
            for obj in objects
            if template_path(obj) is not None and key(obj).namespace != self.namespace and self._gives_access(obj)
        ]

    def _volume(self) -> Object:
        sources = [_source(self.kubeconfig, KUBECONFIG), _source(ACCESS_SECRET, TOKEN)]
        return {"name": _VOLUME, "projected": {"defaultMode": _MODE, "sources": sources}}


def template_path(obj: Object) -> tuple[str, ...] | None:
    """Path of the pod template; None if the object is not a workload."""
    group = str(obj.get("apiVersion") or "").partition("/")[0]
    return _TEMPLATES.get((group, str(obj.get("kind") or "")))


def _source(secret: str, item: str) -> Object:
    return {"secret": {"name": secret, "items": [{"key": item, "path": item}], "optional": False}}


def _has(container: Object, variable: str) -> bool:
    return any(each.get("name") == variable for each in mappings(container.get("env")))


def _set(container: Object, variable: str, value: str) -> None:
    present = mappings(container.get("env"))
    new = {"name": variable, "value": value}
    if _has(container, variable):
        container["env"] = [new if each.get("name") == variable else each for each in present]
    else:
        container["env"] = [*present, new]


def _add(holder: Object, field: str, item: Object) -> None:
    """Add an item to a list field; an item of the same name is replaced."""
    others = [each for each in mappings(holder.get(field)) if each.get("name") != item["name"]]
    holder[field] = [*others, item]


def _refer(part: Object, secret: str) -> None:
    meta = mapping(part.get("metadata"))
    part["metadata"] = {
        **meta,
        "annotations": {**mapping(meta.get("annotations")), annotation_key(SECRET, secret): secret},
    }


def _over(defaults: Object, obj: Object) -> Object:
    result: dict[str, Any] = dict(obj)
    for name, value in defaults.items():
        present = result.get(name)
        if present is None:
            result[name] = value
        elif isinstance(value, dict) and isinstance(present, dict):
            result[name] = _over(value, present)
    return result
