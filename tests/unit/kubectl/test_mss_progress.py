"""What `kubectl mss status` makes of the status of a ManagedSeedSet."""

from typing import Any

import pytest

from kubectl.seed_sets.reading import progress_of

ROLLING: Any = {"updateStrategy": {"rollingUpdate": {}}}
IDLE = {"type": "Progressing", "status": "False", "reason": "Idle", "message": "No replica is pending."}
REJECTED = {"type": "Progressing", "status": "False", "reason": "UpdateRejected", "message": "no such version"}
PENDING = {"name": "s-1", "reason": "SeedNotReady", "since": "2026-01-01T00:00:00Z"}
FULL = {"replicas": 2, "readyReplicas": 2}


@pytest.mark.parametrize(
    ("spec", "status", "wanted"),
    [
        ({}, FULL, (True, "2 of 2 replicas are there, 2 are ready")),
        ({}, {"replicas": 1, "readyReplicas": 1}, (False, "1 of 2 replicas are there, 1 are ready")),
        (
            {},
            {**FULL, "readyReplicas": 1, "pendingReplica": PENDING},
            (False, "2 of 2 replicas are there, 1 are ready; replica s-1: SeedNotReady since 2026-01-01T00:00:00Z"),
        ),
        (
            ROLLING,
            {**FULL, "updatedReplicas": 1, "conditions": [IDLE]},
            (True, "2 of 2 replicas are there, 2 are ready, 1 are updated"),
        ),
        (
            ROLLING,
            {**FULL, "conditions": [REJECTED]},
            (False, "2 of 2 replicas are there, 2 are ready, 0 are updated; UpdateRejected: no such version"),
        ),
        ({}, {**FULL, "observedGeneration": 1}, (False, "the controller manager has not seen the last change yet")),
    ],
    ids=["ready", "too few", "pending", "below the partition", "rejected", "not seen"],
)
def test_progress(spec: Any, status: Any, wanted: tuple[bool, str]) -> None:
    seed_set = {
        "metadata": {"name": "s", "namespace": "garden", "generation": 2},
        "spec": {"replicas": 2, **spec},
        "status": {"observedGeneration": 2, **status},
    }
    assert progress_of(seed_set) == wanted
