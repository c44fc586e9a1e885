"""The Secret `cloudprovider` of a WorkloadIdentity has two writers, of which none undoes what the other writes."""

import orjson
import pytest

from components import identity_credentials
from gardener import keys
from kube.objects import Object

P = "workloadidentity.security.gardener.cloud"
SHOOT: Object = {"metadata": {"namespace": "garden-dev", "name": "rose", "uid": "u"}}
PURPOSE = {"security.gardener.cloud/purpose": "workload-identity-token-requestor"}
RENEWAL = {f"{P}/token-renew-timestamp": "2026-01-01T00:00:00Z"}


def identity(name: str = "aws", config: Object | None = None) -> Object:
    system = {"type": "aws"} if config is None else {"type": "aws", "providerConfig": config}
    return {"metadata": {"namespace": "garden-dev", "name": name}, "spec": {"targetSystem": system}}


def secret(of: Object) -> Object:
    return identity_credentials.secret("shoot--dev--rose", of, shoot=SHOOT)


def as_left(of: Object, **data: str) -> Object:
    """By flow and requestor, and with what another client has added."""
    made = secret(of)
    meta = {
        **made["metadata"],
        "uid": "s",
        "labels": {**made["metadata"]["labels"], "other": "label"},
        "annotations": {**made["metadata"]["annotations"], **RENEWAL},
    }
    return {**made, "metadata": meta, "data": {**made["data"], "token": "dG9rZW4=", **data}}


def test_it_reports_what_the_token_is_for() -> None:
    made = secret(identity(config={"roleARN": "arn"}))
    assert made["metadata"]["labels"] == {"gardener.cloud/purpose": "cloudprovider", f"{P}/provider": "aws", **PURPOSE}
    notes = made["metadata"]["annotations"]
    assert (notes[f"{P}/namespace"], notes[f"{P}/name"]) == ("garden-dev", "aws")
    assert orjson.loads(notes[f"{P}/context-object"]) == {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "Shoot",
        **SHOOT["metadata"],
    }
    assert made["data"] == {"config": "eyJyb2xlQVJOIjoiYXJuIn0="}


STATIC: Object = {
    "metadata": {
        "uid": "s",
        "labels": {keys.GARDENLET_MANAGED: "true", "gardener.cloud/purpose": "cloudprovider"},
        "annotations": {keys.GARDENLET_COMPONENT: "o", keys.GARDENLET_DIGEST: "d", "of": "others"},
    },
    "data": {"accessKeyID": "a", "config": "b"},
}


@pytest.mark.parametrize(
    ("live", "wanted", "expected"),
    [
        (as_left(identity()), identity(), None),
        (as_left(identity(), projectID="eA=="), identity(), None),
        (
            as_left(identity(config={"a": "b"})),
            identity(),
            {"labels": {}, "annotations": {}, "data": {"config": None}},
        ),
        (
            as_left(identity()),
            identity("other"),
            {"labels": {}, "annotations": {f"{P}/name": "other", f"{P}/token-renew-timestamp": None}},
        ),
        (
            STATIC,
            identity(),
            {
                "labels": {keys.GARDENLET_MANAGED: None, f"{P}/provider": "aws", **PURPOSE},
                "annotations": {
                    keys.GARDENLET_COMPONENT: None,
                    keys.GARDENLET_DIGEST: None,
                    **secret(identity())["metadata"]["annotations"],
                },
                "data": {"accessKeyID": None, "config": None},
            },
        ),
    ],
    ids=["as it was left", "with more", "other settings", "another identity", "other credentials"],
)
def test_only_what_differs_is_written(live: Object, wanted: Object, expected: Object | None) -> None:
    patch = identity_credentials.patch(secret(wanted), live)
    if expected is None:
        assert patch is None
        return
    data = expected.pop("data", None)
    assert patch == {"metadata": {"uid": "s", **expected}} | ({} if data is None else {"data": data})


def test_it_is_waited_for_until_it_has_a_token() -> None:
    assert identity_credentials.lacks_token(None) == "it has no token yet"
    assert identity_credentials.lacks_token(secret(identity())) == "it has no token yet"
    assert identity_credentials.lacks_token(as_left(identity())) == ""
