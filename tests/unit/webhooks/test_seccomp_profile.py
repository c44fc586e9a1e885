from typing import Any

import pytest
from hypothesis import given
from mutating import NO_FACTS, behaves_well, damaged, mutated, one_of, patiently, pods, record, words

from config.schema_webhooks import Webhook
from webhooks.admission import Errored, Refusal
from webhooks.handlers import seccomp_profile

mutation = seccomp_profile.mutation(Webhook(enabled=True), NO_FACTS)
DEFAULT = {"type": "RuntimeDefault"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param({}, {"spec": {"securityContext": {"seccompProfile": DEFAULT}}}, id="no spec"),
        pytest.param({"spec": None}, {"spec": {"securityContext": {"seccompProfile": DEFAULT}}}, id="null spec"),
        pytest.param(
            {"spec": {"securityContext": {"runAsUser": 1}}},
            {"spec": {"securityContext": {"runAsUser": 1, "seccompProfile": DEFAULT}}},
            id="other fields of the security context stay",
        ),
        pytest.param(
            {"spec": {"securityContext": {"seccompProfile": {"type": "", "localhostProfile": "x"}}}},
            {"spec": {"securityContext": {"seccompProfile": DEFAULT}}},
            id="a profile without a type is replaced as a whole",
        ),
        pytest.param(
            {"spec": {"containers": [{"securityContext": {"seccompProfile": {"type": "Unconfined"}}}]}},
            {
                "spec": {
                    "containers": [{"securityContext": {"seccompProfile": {"type": "Unconfined"}}}],
                    "securityContext": {"seccompProfile": DEFAULT},
                }
            },
            id="containers are not looked at",
        ),
        *(
            pytest.param(
                {"spec": {"securityContext": {"seccompProfile": {"type": chosen}}}},
                {"spec": {"securityContext": {"seccompProfile": {"type": chosen}}}},
                id=f"{chosen} stays",
            )
            for chosen in ("Unconfined", "RuntimeDefault", "Localhost", "other")
        ),
    ],
)
def test_pods_without_a_profile_get_the_default_one(before: Any, after: Any) -> None:
    assert mutated(mutation, before) == after


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        (
            {"spec": {"securityContext": {"seccompProfile": "x"}}},
            "unable to decode into Pod: Expected `object | null`, got `str` - at `$.spec.securityContext.seccompProfile`",
        ),
        ({"apiVersion": "v1", "kind": "ConfigMap"}, "unable to decode v1, Kind=ConfigMap into Pod"),
        ([], "unable to decode into Pod: expected an object"),
    ],
)
def test_what_is_no_pod_cannot_be_decoded(obj: Any, message: str) -> None:
    with pytest.raises(Refusal) as refused:
        mutated(mutation, obj)
    assert refused.value.answer == Errored(400, message)


security_contexts = record(
    seccompProfile=record(type=one_of("", "Unconfined", "RuntimeDefault"), localhostProfile=words)
)
some_pods = pods(record(labels=record()), securityContext=security_contexts)


@patiently
@given(some_pods | damaged(some_pods))
def test_it_behaves_well(obj: Any) -> None:
    behaves_well(lambda pod: mutated(mutation, pod), obj, touches=["spec.securityContext.seccompProfile"])
