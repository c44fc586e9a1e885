"""What a ControllerInstallation is to be like.

Its labels hold hashes of the Seed, the ControllerRegistration and the ControllerDeployment that it was made from, and
its references the versions that they had when their hash last changed: whoever installs extensions does so anew when
one of these versions changes, and a status that changes must not make it do so.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from gardener.api.garden import CONTROLLER_INSTALLATIONS
from kube.objects import Object, annotations, is_deleting, labels, mapping, metadata, spec, text
from kube.packing import digest
from kube.paths import at, mapping_at, mappings_at

SEED_HASH = "seed-spec-hash"
REGISTRATION_HASH = "registration-spec-hash"
DEPLOYMENT_HASH = "deployment-hash"
LABELS = (SEED_HASH, REGISTRATION_HASH, DEPLOYMENT_HASH)
POD_SECURITY = "security.gardener.cloud/pod-security-enforce"
_CONVERTED = "migration.controllerdeployment.gardener.cloud/"
_REFERENCES = ("seedRef", "registrationRef", "deploymentRef")
_HASH_DIGITS = 16
_NAMES = 16
_NAME_DIGITS = 5
_LONGEST_NAME = 253


@dataclass(frozen=True, slots=True)
class Deployment:
    """What is kept of a ControllerDeployment: its charts are large."""

    hash: str
    version: str

    @classmethod
    def of(cls, deployment: Object) -> "Deployment":
        said = annotations(deployment)
        content = {
            "helm": deployment.get("helm"),
            "type": said.get(f"{_CONVERTED}type"),
            "providerConfig": said.get(f"{_CONVERTED}providerConfig"),
        }
        return cls(hash_of(content), text(metadata(deployment).get("resourceVersion")))


@dataclass(frozen=True, slots=True)
class _Source:
    """What an installation refers to."""

    field: str
    label: str
    name: str
    hash: str
    version: str

    def reference(self, installation: Object | None) -> Object:
        """The version that is known stays as long as the hash does."""
        present = mapping_at(installation or {}, "spec", self.field)
        is_same = present.get("name") == self.name and labels(installation or {}).get(self.label) == self.hash
        version = present.get("resourceVersion") if is_same else self.version
        return {"name": self.name, "resourceVersion": version} if version else {"name": self.name}


@dataclass(frozen=True, slots=True)
class Desired:
    """Args: deployment: name and content of the ControllerDeployment, if there is one."""

    seed: Object
    registration: Object
    deployment: tuple[str, Deployment] | None

    def new(self, name: str) -> Object:
        pod_security = self._pod_security
        return {
            **CONTROLLER_INSTALLATIONS.type_meta,
            "metadata": {
                "name": name,
                "labels": self._labels(),
                **({"annotations": {POD_SECURITY: pod_security}} if pod_security is not None else {}),
            },
            "spec": {source.field: source.reference(None) for source in self._sources()},
        }

    def patch(self, installation: Object) -> Object | None:
        """A merge patch for the present one; None: it is as it should be."""
        references: Object = {source.field: source.reference(installation) for source in self._sources()}
        present = spec(installation)
        changes = {
            "labels": _changes(labels(installation), {DEPLOYMENT_HASH: None, **self._labels()}),
            "annotations": _changes(annotations(installation), {POD_SECURITY: self._pod_security}),
            "spec": {
                field: references.get(field)
                for field in _REFERENCES
                if _identity(present.get(field)) != _identity(references.get(field))
            },
        }
        if not any(changes.values()):
            return None
        meta: Object = {"resourceVersion": metadata(installation)["resourceVersion"]}
        meta |= {field: changes[field] for field in ("labels", "annotations") if changes[field]}
        return {"metadata": meta, **({"spec": changes["spec"]} if changes["spec"] else {})}

    def _sources(self) -> Iterable[_Source]:
        for field, label, obj in (
            ("seedRef", SEED_HASH, self.seed),
            ("registrationRef", REGISTRATION_HASH, self.registration),
        ):
            meta = metadata(obj)
            yield _Source(field, label, text(meta.get("name")), hash_of(spec(obj)), text(meta.get("resourceVersion")))
        if self.deployment is not None:
            name, content = self.deployment
            yield _Source("deploymentRef", DEPLOYMENT_HASH, name, content.hash, content.version)

    def _labels(self) -> dict[str, str]:
        return {source.label: source.hash for source in self._sources()}

    @property
    def _pod_security(self) -> str | None:
        return annotations(self.registration).get(POD_SECURITY)


def _changes(present: Mapping[str, str], wanted: Mapping[str, str | None]) -> Object:
    """None for what is to go."""
    return {name: value for name, value in wanted.items() if present.get(name) != value}


def _identity(reference: Any) -> tuple[Any, Any]:
    """What of an ObjectReference is ours."""
    return mapping(reference).get("name"), mapping(reference).get("resourceVersion")


def hash_of(content: Any) -> str:
    try:
        body = orjson.dumps(content, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        body = digest(content)  # it nests too deeply
    return hashlib.sha256(body).hexdigest()[:_HASH_DIGITS]


# --- names


def names_for(registration: str, seed: str) -> Iterator[str]:
    """Names for the installation, in the order in which they are tried: one may be taken by that of another Seed."""
    for number in range(_NAMES):
        digits = hashlib.sha256(f"{seed}#{number}".encode() if number else seed.encode()).hexdigest()[:_NAME_DIGITS]
        yield f"{registration[: _LONGEST_NAME - _NAME_DIGITS - 1].rstrip('-.')}-{digits}"


# --- which one


def chosen(installations: Iterable[Object]) -> dict[str, Object]:
    """The installation of each ControllerRegistration, by its name, out of those of one Seed.

    If there are several, it is the one that has been kept up to date so far; the others are left alone.
    """
    result: dict[str, Object] = {}
    for installation in sorted(installations, key=_rank):
        result.setdefault(registration_of(installation), installation)
    return result


def _rank(installation: Object) -> tuple[bool, bool, str, str]:
    meta = metadata(installation)
    is_new = SEED_HASH not in labels(installation)
    return is_deleting(installation), is_new, text(meta.get("creationTimestamp")), text(meta.get("name"))


def registration_of(installation: Object) -> str:
    return text(at(installation, "spec", "registrationRef", "name"))


def seed_of(installation: Object) -> str:
    return text(at(installation, "spec", "seedRef", "name"))


def deployment_of(registration: Object) -> str:
    """The name of the ControllerDeployment; empty: it has none."""
    references = mappings_at(registration, "spec", "deployment", "deploymentRefs")
    return text(references[0].get("name")) if references else ""
