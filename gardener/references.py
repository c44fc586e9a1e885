"""Annotations that protect ConfigMaps and Secrets from the garbage collector, and help for authors of manifests.

The collector deletes an object that carries its label as soon as no annotation refers to it any more. Such an object is
immutable and has the hash of its content in its name: new content is a new object, running pods keep the old one, and
the old one is deleted when the last of them has ended. An annotation

    reference…/configmap-4ed34879: test-5678

protects the ConfigMap `test-5678` in the namespace of the object that has the annotation. The part behind the hyphen
only keeps the keys apart.

`python -m agent.references FILE...` does it on the command line.
"""

import base64
import copy
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gardener.api.kinds import MANAGED_RESOURCES
from gardener.keys import GARBAGE_COLLECTABLE, REFERENCE_PREFIX
from kube.lists import items_of
from kube.objects import Object, annotations, key, labels, metadata
from kube.paths import at, mapping_at, mappings_at
from kube.pod_references import Slot, slot, slots
from kube.resources import SECRETS

# --- annotations that refer to objects


CONFIG_MAP = "configmap"
SECRET = "secret"

_HASH_DIGITS = 8


class Name(NamedTuple):
    """One ConfigMap or Secret."""

    kind: str
    """Name of the kind in annotations."""
    namespace: str
    name: str


def annotation_key(kind: str, name: str) -> str:
    return f"{REFERENCE_PREFIX}{kind}-{hashlib.sha256(name.encode()).hexdigest()[:_HASH_DIGITS]}"


def kind_from_annotation_key(annotation: str) -> str:
    """The kind that an annotation refers to; empty if it is no reference."""
    if not annotation.startswith(REFERENCE_PREFIX):
        return ""
    kind, hyphen, rest = annotation.removeprefix(REFERENCE_PREFIX).partition("-")
    return kind if hyphen and "-" not in rest else ""


def references(obj: Object) -> Iterator[Name]:
    """References in the annotations of an object, without those of templates in it."""
    namespace = key(obj).namespace
    for annotation, name in annotations(obj).items():
        kind = kind_from_annotation_key(annotation)
        if kind and name:
            yield Name(kind, namespace, name)


# --- references to ConfigMaps and Secrets in manifests, by kind


Path = tuple[str, ...]

_TEMPLATE: Path = ("spec", "template")
_JOB_TEMPLATE: Path = ("spec", "jobTemplate")
_OF_PODS = ("initContainers", "containers", "volumes", "imagePullSecrets")
"""Fields of a Prometheus that become those of its pods."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Places of the names, and the parts of the object that carry annotations in addition to the object itself."""

    slots: Callable[[Object], Iterator[Slot]]
    annotated: tuple[Path, ...] = ()


def kind_of(obj: Object) -> Kind | None:
    """Kind of the object; None if its objects protect nothing."""
    return _KINDS.get((obj.get("apiVersion") or "", obj.get("kind") or ""))


# --- pods


def _pods_at(*path: str) -> Callable[[Object], Iterator[Slot]]:
    return lambda obj: slots(mapping_at(obj, *path))


# --- other kinds


def _prometheus_slots(obj: Object) -> Iterator[Slot]:
    spec = mapping_at(obj, "spec")
    yield from slots({field: spec.get(field) for field in _OF_PODS})
    for remote in mappings_at(spec, "remoteWrite"):
        login = mapping_at(remote, "basicAuth")
        yield from slot(SECRETS.kind, login.get("username"))
        yield from slot(SECRETS.kind, login.get("password"))


def _managed_resource_slots(obj: Object) -> Iterator[Slot]:
    for secret in mappings_at(mapping_at(obj, "spec"), "secretRefs"):
        yield from slot(SECRETS.kind, secret)


_POD = Kind(_pods_at("spec"))
_WORKLOAD = Kind(_pods_at(*_TEMPLATE, "spec"), (_TEMPLATE,))
_CRON_JOB = Kind(_pods_at(*_JOB_TEMPLATE, *_TEMPLATE, "spec"), (_JOB_TEMPLATE, (*_JOB_TEMPLATE, *_TEMPLATE)))

_KINDS: dict[tuple[str, str], Kind] = {
    ("v1", "Pod"): _POD,
    ("apps/v1", "Deployment"): _WORKLOAD,
    ("apps/v1beta1", "Deployment"): _WORKLOAD,
    ("apps/v1beta2", "Deployment"): _WORKLOAD,
    ("apps/v1", "StatefulSet"): _WORKLOAD,
    ("apps/v1beta1", "StatefulSet"): _WORKLOAD,
    ("apps/v1beta2", "StatefulSet"): _WORKLOAD,
    ("apps/v1", "DaemonSet"): _WORKLOAD,
    ("apps/v1beta2", "DaemonSet"): _WORKLOAD,
    ("batch/v1", "Job"): _WORKLOAD,
    ("batch/v1", "CronJob"): _CRON_JOB,
    ("batch/v1beta1", "CronJob"): _CRON_JOB,
    (MANAGED_RESOURCES.api_version, MANAGED_RESOURCES.kind): Kind(_managed_resource_slots),
    ("monitoring.coreos.com/v1", "Prometheus"): Kind(_prometheus_slots),
}


# --- ConfigMaps and Secrets whose name depends on their content


def collectable_kind(obj: Object) -> str:
    """Name of the kind in annotations; empty for all but ConfigMaps and Secrets."""
    return _COLLECTABLE.get((obj.get("apiVersion") or "", obj.get("kind") or ""), "")


def make_unique(obj: Object) -> Object:
    """A copy of a ConfigMap or Secret that is immutable, labelled, and called `<name>-<hash of its content>`.

    Raises:
        ValueError: it is neither, or has no name.
    """
    if not collectable_kind(obj):
        raise ValueError(f"unhandled object type {obj.get('apiVersion')} {obj.get('kind')}")
    name = metadata(obj).get("name")
    if not name:
        raise ValueError(f"a {obj['kind']} without metadata.name can't be named after its content; set metadata.name")
    unique = copy.deepcopy(obj)
    unique["immutable"] = True
    unique["metadata"]["name"] = f"{name}-{content_hash(obj)}"
    unique["metadata"]["labels"] = {**labels(obj), GARBAGE_COLLECTABLE: "true"}
    return unique


def content_hash(obj: Object) -> str:
    """Eight hex digits; the same for a text whether it stands in `data` or in `stringData`."""
    data = {**(obj.get("data") or {})}
    if obj["kind"] == "Secret":
        data |= {key: _encoded(text) for key, text in (obj.get("stringData") or {}).items()}
    else:
        data = {key: _encoded(text) for key, text in data.items()} | (obj.get("binaryData") or {})
    canonical = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:_HASH_DIGITS]


_COLLECTABLE = {("v1", "ConfigMap"): CONFIG_MAP, ("v1", "Secret"): SECRET}


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


# --- annotations that a manifest needs for its references


def inject_annotations(obj: Object, *additional: str) -> Object:
    """A copy with an annotation for each ConfigMap and Secret that the object names.

    The annotations are put on the object and on its pod templates, since running pods protect what they use even when
    the object does not name it any more. Obsolete references are removed.

    Args:
        obj: of a kind that the garbage collector observes.
        additional: keys of annotations to be set as well, with empty values; they protect nothing.

    Raises:
        ValueError: the garbage collector does not observe this kind.
    """
    kind = kind_of(obj)
    if kind is None:
        raise ValueError(f"unhandled object type {obj.get('apiVersion')} {obj.get('kind')}")
    annotated = copy.deepcopy(obj)
    wanted = {annotation_key(slot.kind.lower(), slot.name): slot.name for slot in kind.slots(annotated)}
    wanted |= dict.fromkeys(additional, "")
    for path in ((), *kind.annotated):
        _replace_references(at(annotated, *path), wanted)
    return annotated


def _replace_references(part: Object | None, wanted: dict[str, str]) -> None:
    if part is None:
        return
    meta = part.get("metadata") or {}
    present: dict[str, str] = meta.get("annotations") or {}
    result = {key: value for key, value in present.items() if not key.startswith(REFERENCE_PREFIX)} | wanted
    if result != present:
        part["metadata"] = {**meta, "annotations": result}


# --- manifests that belong together


def stamp(manifests: Sequence[Object]) -> list[Object]:
    """Copies in the same order, those of a List one by one.

    A ConfigMap or Secret is renamed if one of the manifests names it, and it does not set `immutable`: with `false` it
    keeps its name and may change, with `true` its author has named it. So a second call changes nothing. Objects that
    nothing names would be collected at once; they stay unchanged.

    Raises:
        ValueError: lists are nested too deeply, two manifests are of the same ConfigMap or Secret, or one has no name.
    """
    objects = [copy.deepcopy(obj) for manifest in manifests for obj in items_of(manifest)]
    named = {_name(slot, obj) for obj in objects for slot in _slots(obj)}
    renamed: dict[Name, str] = {}
    stamped = []
    for obj in objects:
        name = Name(collectable_kind(obj), key(obj).namespace, key(obj).name)
        if name in renamed:
            raise ValueError(f"{obj['kind']} {key(obj)} occurs twice; remove one")
        if name in named and "immutable" not in obj:
            obj = make_unique(obj)  # noqa: PLW2901 - the same object, finished
            renamed[name] = obj["metadata"]["name"]
        stamped.append(obj)
    for obj in stamped:
        for reference in _slots(obj):
            reference.holder[reference.field] = renamed.get(_name(reference, obj), reference.name)
    return [inject_annotations(obj) if kind_of(obj) else obj for obj in stamped]


def _slots(obj: Object) -> Iterable[Slot]:
    kind = kind_of(obj)
    return kind.slots(obj) if kind else ()


def _name(slot: Slot, obj: Object) -> Name:
    return Name(slot.kind.lower(), key(obj).namespace, slot.name)
