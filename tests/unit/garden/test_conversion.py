"""ControllerDeployments in two versions: nothing is lost on the way there and back."""

import asyncio
import json
from typing import Any

import pytest

from kube.objects import Object
from webhooks.garden.conversion import answer, convert

V1, V1BETA1 = "core.gardener.cloud/v1", "core.gardener.cloud/v1beta1"
PREFIX = "migration.controllerdeployment.gardener.cloud"
META = {"name": "d", "annotations": {"a": "b"}}


def deployment(version: str, meta: Object = META, **fields: Any) -> Object:
    return {"apiVersion": version, "kind": "ControllerDeployment", "metadata": meta, **fields}


@pytest.mark.parametrize(
    ("new", "old"),
    [
        (
            deployment(V1, helm={"rawChart": "aGk=", "values": {"a": 1}}),
            deployment(V1BETA1, type="helm", providerConfig={"chart": "aGk=", "values": {"a": 1}}),
        ),
        (
            deployment(V1, helm={"ociRepository": {"ref": "a/b:c"}}, injectGardenKubeconfig=False),
            deployment(
                V1BETA1, type="helm", providerConfig={"ociRepository": {"ref": "a/b:c"}}, injectGardenKubeconfig=False
            ),
        ),
        (
            deployment(
                V1,
                {"name": "d", "annotations": {"a": "b", f"{PREFIX}/type": "own", f"{PREFIX}/providerConfig": '{"x":1}'}},
            ),
            deployment(V1BETA1, type="own", providerConfig={"x": 1}),
        ),
        (
            deployment(V1, {"name": "d", "annotations": {f"{PREFIX}/type": "own"}}),
            deployment(V1BETA1, {"name": "d"}, type="own"),
        ),
        (deployment(V1), deployment(V1BETA1, type="")),
    ],
)  # fmt: skip
def test_both_versions_state_the_same(new: Object, old: Object) -> None:
    assert convert(new, V1BETA1) == old
    assert convert(old, V1) == new
    assert convert(new, V1) == new


def requested(*objects: Object, version: str) -> Object:
    review = {"request": {"uid": "u", "desiredAPIVersion": version, "objects": list(objects)}}
    response: Object = json.loads(asyncio.run(answer(json.dumps(review).encode(), "application/json")))["response"]
    return response


def test_a_review_is_answered_in_order() -> None:
    objects = [deployment(V1, {"name": name}, helm={}) for name in ("a", "b")]
    response = requested(*objects, version=V1BETA1)
    assert (response["uid"], response["result"]) == ("u", {"status": "Success"})
    assert [each["metadata"]["name"] for each in response["convertedObjects"]] == ["a", "b"]


@pytest.mark.parametrize(
    ("obj", "version", "message"),
    [
        (deployment(V1), "core.gardener.cloud/v2", "cannot convert"),
        ({**deployment(V1), "kind": "Pod"}, V1BETA1, "cannot convert"),
        (deployment(V1, {"annotations": {f"{PREFIX}/providerConfig": "{"}}), V1BETA1, "is not valid JSON"),
    ],
)
def test_what_cannot_be_converted_is_reported(obj: Object, version: str, message: str) -> None:
    result = requested(obj, version=version)["result"]
    assert result["status"] == "Failure"
    assert message in result["message"]


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b"{", b'{"request": 3}', b'{"request": {"objects": 3}}'])
def test_any_body_is_answered(body: bytes) -> None:
    assert json.loads(asyncio.run(answer(body, "")))["kind"] == "ConversionReview"
