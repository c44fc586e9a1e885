"""Which Jobs have finished and are about to be cleaned up for that, and which the status remembers."""

from typing import Any

import pytest

from gardener.managed_resource import jobs
from gardener.managed_resource.plan import PlannedObject
from gardener.managed_resource.references import key_of
from kube.apply.kinds import is_cleaned_up
from kube.objects import Key, Object, annotations, key
from kube.packing import compact
from kube.resources import Resource

JOBS = Resource("batch", "v1", "Job", "jobs", namespaced=True)


def job(*conditions: str, status: str = "True", **spec: Any) -> Object:
    reported = [{"type": condition, "status": status} for condition in conditions]
    return {"metadata": {"name": "j"}, "spec": spec, "status": {"conditions": reported}}


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (job("Complete", ttlSecondsAfterFinished=0), True),
        (job("SuccessCriteriaMet", "Complete", ttlSecondsAfterFinished=60), True),
        (job("Failed", ttlSecondsAfterFinished=0), True),
        (job("Complete"), False),
        (job("Complete", ttlSecondsAfterFinished=None), False),
        (job(ttlSecondsAfterFinished=0), False),
        (job("Complete", status="False", ttlSecondsAfterFinished=0), False),
        (job("Suspended", ttlSecondsAfterFinished=0), False),
        ({"metadata": {"name": "j"}}, False),
    ],
)
def test_a_job_that_has_finished_is_cleaned_up_if_it_states_so(obj: Object, expected: bool) -> None:
    assert is_cleaned_up(JOBS, obj) is expected


def test_other_kinds_are_not() -> None:
    others = Resource("example.com", "v1", "Job", "jobs", namespaced=True)
    assert not is_cleaned_up(others, job("Complete", ttlSecondsAfterFinished=0))


# --- what the status remembers of them

MANIFEST = {**JOBS.type_meta, **job(ttlSecondsAfterFinished=0)}
DIGEST = bytes(range(16))


def planned(manifest: Object) -> PlannedObject:
    name = key_of(manifest)
    return PlannedObject(
        name=name,
        text=name,
        key=Key("ns", "j"),
        resource=JOBS,
        problem="",
        reference={**{field: manifest[field] for field in ("apiVersion", "kind")}, "namespace": "ns", "name": "j"},
        size=2,
        manifest=compact(manifest),
        digest=DIGEST,
        is_ignored=False,
        secret="s",
    )


@pytest.mark.parametrize(
    ("manifest", "applied", "listed"),
    [
        (MANIFEST, DIGEST + b"rules", True),
        (MANIFEST, b"another manifest", False),
        (MANIFEST, b"", False),
        ({**MANIFEST, "spec": {}}, DIGEST, False),
        ({**MANIFEST, "kind": "CronJob"}, DIGEST, False),
        ({**MANIFEST, "apiVersion": "example.com/v1"}, DIGEST, False),
    ],
    ids=["applied", "changed", "not yet", "stays", "other kind", "other group"],
)
def test_a_job_is_listed_once_it_was_applied_if_it_is_removed_when_finished(
    manifest: Object, applied: bytes, *, listed: bool
) -> None:
    wanted = planned(manifest)
    entries = jobs.entries([wanted], {wanted.name: applied})
    assert entries == ([{"namespace": "ns", "name": "j", "manifest": DIGEST.hex()}] if listed else [])


def test_what_is_listed_is_read_again() -> None:
    entries = [{"namespace": "ns", "name": "j", "manifest": DIGEST.hex()}, {"name": "broken", "manifest": "no digest"}]
    stored = {"status": {jobs.FIELD: entries}}
    assert jobs.digests(stored) == {"batch/Job/ns/j": DIGEST}
    assert jobs.digests({}) == {}
    (found, _) = jobs.finished(stored, origin="garden/mr")
    assert is_cleaned_up(JOBS, found)
    assert (key(found), annotations(found)) == (Key("ns", "j"), {"resources.gardener.cloud/origin": "garden/mr"})
