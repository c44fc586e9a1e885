from typing import Any

import pytest

from config.resource_manager.webhooks import Webhook
from kit.webhooks.mutating import NO_STATE, mutated, one_of, pods, record, refusal, well_behaved, words
from webhooks.admission import Errored
from webhooks.handlers import seccomp_profile

mutation = seccomp_profile.mutation(Webhook(enabled=True), NO_STATE)
DEFAULT = {"type": "RuntimeDefault"}
CONTAINERS = {"containers": [{"securityContext": {"seccompProfile": {"type": "Unconfined"}}}]}
NO_POD = "unable to decode into Pod:"


def pod(profile: Any, **spec: Any) -> Any:
    return {"spec": {**spec, "securityContext": {"seccompProfile": profile}}}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param({}, pod(DEFAULT), id="no spec"),
        pytest.param({"spec": None}, pod(DEFAULT), id="null spec"),
        pytest.param(
            {"spec": {"securityContext": {"runAsUser": 1}}},
            {"spec": {"securityContext": {"runAsUser": 1, "seccompProfile": DEFAULT}}},
            id="other fields of the security context stay",
        ),
        pytest.param(pod({"type": "", "localhostProfile": "x"}), pod(DEFAULT), id="replaced as a whole without a type"),
        pytest.param({"spec": CONTAINERS}, pod(DEFAULT, **CONTAINERS), id="containers are not looked at"),
        *(
            pytest.param(pod({"type": chosen}), pod({"type": chosen}), id=f"{chosen} stays")
            for chosen in ("Unconfined", "RuntimeDefault", "Localhost", "other")
        ),
    ],
)
def test_pods_without_a_profile_get_the_default_one(before: Any, after: Any) -> None:
    assert mutated(mutation, before) == after


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        (pod("x"), f"{NO_POD} Expected `object | null`, got `str` - at `$.spec.securityContext.seccompProfile`"),
        ({"apiVersion": "v1", "kind": "ConfigMap"}, "unable to decode v1, Kind=ConfigMap into Pod"),
        ([], f"{NO_POD} expected an object"),
    ],
)
def test_what_is_no_pod_cannot_be_decoded(obj: Any, message: str) -> None:
    assert refusal(mutation, obj) == Errored(400, message)


security_contexts = record(
    seccompProfile=record(type=one_of("", "Unconfined", "RuntimeDefault"), localhostProfile=words)
)
some_pods = pods(record(labels=record()), securityContext=security_contexts)

test_it_behaves_well = well_behaved(mutation, some_pods, touches=["spec.securityContext.seccompProfile"])
