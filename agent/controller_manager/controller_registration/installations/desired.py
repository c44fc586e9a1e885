"""Desired ControllerInstallations.

The labels hold hashes of the Seed, the ControllerRegistration and the ControllerDeployment of an installation: those of
the original, so that neither rewrites the installations of the other. The references hold the versions that these
objects had when their content last changed: a changed version makes the gardenlet install extensions again, and a
change of a status must not do so. The hashes leave out lists and numbers; their changes are found by digests of all
content, which a process remembers.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from gardener import keys
from gardener.api.garden import CONTROLLER_INSTALLATIONS
from kube.objects import Object, annotations, is_deleting, labels, mapping, metadata, spec, text
from kube.packing import digest
from kube.paths import at, mapping_at, mappings_at

SEED_HASH = "seed-spec-hash"
REGISTRATION_HASH = "registration-spec-hash"
DEPLOYMENT_HASH = "deployment-hash"
LABELS = (SEED_HASH, REGISTRATION_HASH, DEPLOYMENT_HASH)
POD_SECURITY = keys.POD_SECURITY_ENFORCE
_CONVERTED = "migration.controllerdeployment.gardener.cloud/"
_REFERENCES = ("seedRef", "registrationRef", "deploymentRef")
_HASH_DIGITS = 16
_NAMES = 16
_NAME_DIGITS = 5
_LONGEST_NAME = 253


Digests = Mapping[str, str]
"""Digest of the content when the installation was last written or correct, by the field that refers to it."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """Cached fields of a ControllerDeployment, without its large charts."""

    hash: str
    digest: str
    version: str

    @classmethod
    def of(cls, deployment: Object) -> "Deployment":
        reported = annotations(deployment)
        content = {
            "helm": deployment.get("helm"),
            "type": reported.get(f"{_CONVERTED}type", ""),
            "providerConfig": reported.get(f"{_CONVERTED}providerConfig", ""),
        }
        return cls(hash_of(content), digest_of(content), text(metadata(deployment).get("resourceVersion")))


@dataclass(frozen=True, slots=True)
class Source:
    """Object that an installation refers to."""

    field: str
    label: str
    name: str
    hash: str
    digest: str
    version: str

    @classmethod
    def of(cls, field: str, label: str, obj: Object) -> "Source":
        meta, content = metadata(obj), spec(obj)
        name, version = text(meta.get("name")), text(meta.get("resourceVersion"))
        return cls(field, label, name, hash_of(content), digest_of(content), version)

    def reference(self, installation: Object, seen: Digests) -> Object:
        """Keep the known version as long as the content does not change."""
        is_same = not self.has_changed(installation, seen)
        version = mapping_at(installation, "spec", self.field).get("resourceVersion") if is_same else self.version
        return {"name": self.name, "resourceVersion": version} if version else {"name": self.name}

    def has_changed(self, installation: Object, seen: Digests) -> bool:
        """Whether the content may have changed since the installation was written.

        If the content was not observed, the version decides; for a Seed the hash, since each heartbeat changes its
        version.
        """
        present = mapping_at(installation, "spec", self.field)
        if present.get("name") != self.name or labels(installation).get(self.label) != self.hash:
            return True
        if present.get("resourceVersion") == self.version:
            return False
        if self.field in seen:
            return seen[self.field] != self.digest
        return self.label != SEED_HASH


def registration_source(registration: Object) -> Source:
    return Source.of("registrationRef", REGISTRATION_HASH, registration)


@dataclass(frozen=True, slots=True)
class Desired:
    """Desired installation; `deployment` is the name and content of the ControllerDeployment, if there is one."""

    seed: Object
    registration: Object
    deployment: tuple[str, Deployment] | None
    seen: Digests = field(default_factory=dict)

    def new(self, name: str) -> Object:
        pod_security = self._pod_security
        return {
            **CONTROLLER_INSTALLATIONS.type_meta,
            "metadata": {
                "name": name,
                "labels": self._labels(),
                **({"annotations": {POD_SECURITY: pod_security}} if pod_security is not None else {}),
            },
            "spec": {source.field: source.reference({}, {}) for source in self._sources()},
        }

    def patch(self, installation: Object) -> Object | None:
        """Merge patch for the present installation; None if nothing changes."""
        references: Object = {s.field: s.reference(installation, self.seen) for s in self._sources()}
        present = spec(installation)
        changes = {
            "labels": _changes(labels(installation), {DEPLOYMENT_HASH: None, **self._labels()}),
            "annotations": _changes(annotations(installation), {POD_SECURITY: self._pod_security}),
            "spec": {
                name: references.get(name)
                for name in _REFERENCES
                if _identity(present.get(name)) != _identity(references.get(name))
            },
        }
        if not any(changes.values()):
            return None
        meta: Object = {"resourceVersion": metadata(installation)["resourceVersion"]}
        meta |= {name: changes[name] for name in ("labels", "annotations") if changes[name]}
        return {"metadata": meta, **({"spec": changes["spec"]} if changes["spec"] else {})}

    def _sources(self) -> Iterable[Source]:
        yield Source.of("seedRef", SEED_HASH, self.seed)
        yield registration_source(self.registration)
        if self.deployment is not None:
            name, content = self.deployment
            yield Source("deploymentRef", DEPLOYMENT_HASH, name, content.hash, content.digest, content.version)

    def digests(self) -> Digests:
        return {source.field: source.digest for source in self._sources()}

    def _labels(self) -> dict[str, str]:
        return {source.label: source.hash for source in self._sources()}

    @property
    def _pod_security(self) -> str | None:
        return annotations(self.registration).get(POD_SECURITY)


def _changes(present: Mapping[str, str], wanted: Mapping[str, str | None]) -> Object:
    """Changed fields; None removes one."""
    return {name: value for name, value in wanted.items() if present.get(name) != value}


def _identity(reference: Any) -> tuple[Any, Any]:
    """Fields of an ObjectReference that are managed here."""
    return mapping(reference).get("name"), mapping(reference).get("resourceVersion")


def hash_of(content: Mapping[str, Any]) -> str:
    """Hash like the original's: of the hashes of all texts, booleans and objects, ordered by name, nothing else."""
    levels: list[tuple[Iterator[Any], list[str]]] = [(_values(content), [])]
    while True:
        values, hashes = levels[-1]
        for value in values:
            if isinstance(value, Mapping):
                levels.append((_values(value), []))
                break
            if isinstance(value, bool):
                hashes.append(_sha256(str(value).lower()))
            elif isinstance(value, str):
                hashes.append(_sha256(value))
        else:
            found = _sha256("".join(hashes))
            levels.pop()
            if not levels:
                return found[:_HASH_DIGITS]
            levels[-1][1].append(found)


def _values(content: Mapping[str, Any]) -> Iterator[Any]:
    return (content[name] for name in sorted(content))


def _sha256(value: str) -> str:
    return hashlib.sha256(value.encode(errors="surrogatepass")).hexdigest()


def digest_of(content: Any) -> str:
    try:
        body = orjson.dumps(content, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        body = digest(content)  # nested too deeply
    return hashlib.sha256(body).hexdigest()[:_HASH_DIGITS]


# --- names


def names_for(registration: str, seed: str) -> Iterator[str]:
    """Candidates for the name of the installation, in order: one may be taken by that of another Seed."""
    for number in range(_NAMES):
        digits = hashlib.sha256(f"{seed}#{number}".encode() if number else seed.encode()).hexdigest()[:_NAME_DIGITS]
        yield f"{registration[: _LONGEST_NAME - _NAME_DIGITS - 1].rstrip('-.')}-{digits}"


# --- choice


def chosen(installations: Iterable[Object]) -> dict[str, Object]:
    """Installation of each ControllerRegistration, by its name, among those of one Seed.

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


def is_made_here(installation: Object) -> bool:
    """Whether this controller has written it, in this or the original program."""
    return REGISTRATION_HASH in labels(installation)


def registration_of(installation: Object) -> str:
    return text(at(installation, "spec", "registrationRef", "name"))


def seed_of(installation: Object) -> str:
    return text(at(installation, "spec", "seedRef", "name"))


def deployment_of(registration: Object) -> str:
    """Name of the ControllerDeployment; empty if there is none."""
    references = mappings_at(registration, "spec", "deployment", "deploymentRefs")
    return text(references[0].get("name")) if references else ""
