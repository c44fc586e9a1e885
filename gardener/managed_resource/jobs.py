"""Jobs that Kubernetes removes when they have finished (`ttlSecondsAfterFinished`): they run once for a manifest.

Such a Job is missing because it has finished, and must not be recreated, also not by the next process. So
`status.jobs` lists those that were created, each with a digest of its manifest.
"""

from collections.abc import Iterable, Mapping

from gardener import keys
from gardener.managed_resource.plan import PlannedObject
from gardener.managed_resource.references import key_of_reference
from kube.objects import Object, group_of, key, mapping, mappings, spec, text
from kube.resources import JOBS

FIELD = "jobs"
"""Field of the status."""


def is_job(reference: Object) -> bool:
    return (group_of(text(reference.get("apiVersion"))), reference.get("kind")) == (JOBS.group, JOBS.kind)


def is_removed_when_finished(manifest: Object) -> bool:
    """Whether Kubernetes removes the Job of a manifest when it has finished."""
    return spec(manifest).get("ttlSecondsAfterFinished") is not None


def is_removed_job(wanted: PlannedObject) -> bool:
    return is_job(wanted.reference) and is_removed_when_finished(wanted.object())


def entries(wanted: Iterable[PlannedObject], applied: Mapping[str, bytes]) -> list[Object]:
    """Jobs for the status. Args: applied: fingerprints by object key, which begin with the digest."""
    found = [
        {"namespace": each.key.namespace, "name": each.key.name, "manifest": each.digest.hex()}
        for each in wanted
        if applied.get(each.name, b"").startswith(each.digest) and is_removed_job(each)
    ]
    return sorted(found, key=lambda entry: (entry["namespace"], entry["name"]))


def digests(managed_resource: Object) -> dict[str, bytes]:
    """Digests of the manifests of the Jobs in the status, by object key."""
    found = {}
    for entry in mappings(mapping(managed_resource.get("status")).get(FIELD)):
        try:
            found[key_of_reference({**JOBS.type_meta, **entry})] = bytes.fromhex(text(entry.get("manifest")))
        except ValueError:
            continue
    return found


def finished(managed_resource: Object, *, origin: str) -> list[Object]:
    """Assumed final state of the Jobs in the status, until a list shows that they exist."""
    return [
        as_finished({"metadata": {"namespace": text(entry.get("namespace")), "name": text(entry.get("name"))}}, origin)
        for entry in mappings(mapping(managed_resource.get("status")).get(FIELD))
    ]


def as_finished(manifest: Object, origin: str) -> Object:
    name = key(manifest)
    return {
        **JOBS.type_meta,
        "metadata": {"namespace": name.namespace, "name": name.name, "annotations": {keys.ORIGIN: origin}},
        "spec": {"ttlSecondsAfterFinished": 0},
        "status": {"conditions": [{"type": "Complete", "status": "True"}]},
    }
