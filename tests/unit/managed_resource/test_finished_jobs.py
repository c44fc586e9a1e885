"""Which Jobs have finished and are about to be cleaned up for that."""

from typing import Any

import pytest

from kube.apply.kinds import is_cleaned_up
from kube.objects import Object
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
def test_a_job_that_has_finished_is_cleaned_up_if_it_says_so(obj: Object, expected: bool) -> None:
    assert is_cleaned_up(JOBS, obj) is expected


def test_other_kinds_are_not() -> None:
    others = Resource("example.com", "v1", "Job", "jobs", namespaced=True)
    assert not is_cleaned_up(others, job("Complete", ttlSecondsAfterFinished=0))
