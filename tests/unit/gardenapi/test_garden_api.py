"""What programs ask of a garden, of the original's API server and of a plain one."""

import asyncio
import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from gardenapi.api import AggregatedApi, GardenApi, PlainApi, Role, recognized
from gardener.api.garden import SHOOTS
from kube.errors import KindNotServed, KubeError, NotUnderstood, Unreachable
from kube.objects import Key, Object, key_of

SHOOT: Object = {
    "metadata": {"name": "s", "namespace": "garden-dev", "resourceVersion": "7", "generation": 3},
    "spec": {"purpose": "testing"},
    "status": {
        "observedGeneration": 3,
        "advertisedAddresses": [
            {"name": "external", "url": "https://api.s.example.com"},
            {"name": "service-account-issuer", "url": "https://issuer.example.com"},
        ],
    },
}
HOUR = timedelta(hours=1)
SERVED = "/apis/core.gardener.cloud/v1beta1"
LIST: Object = {"kind": "APIResourceList", "groupVersion": "core.gardener.cloud/v1beta1"}
"""Without what is served."""


class Client:
    """Records what it is queried; answers reads from `objects`, by kind and name."""

    def __init__(self, objects: dict[tuple[str, str], Object] | None = None) -> None:
        self.objects = objects or {}
        self.requested: list[tuple[Any, ...]] = []

    async def read(self, path: str) -> Object:
        self.requested.append(("read", path))
        return self.objects["", path]

    async def patch(self, resource: Any, name: Key | str, body: Object) -> Object:
        self.requested.append(("patch", resource.plural, *key_of(name), body))
        return body

    async def replace(self, resource: Any, obj: Object, *, subresource: str = "") -> Object:
        self.requested.append(("replace", resource.plural, subresource, obj))
        return obj

    async def request(self, method: str, path: str, *, body: Object) -> bytes:
        self.requested.append((method, path, body))
        return json.dumps(self.objects["", path]).encode()


def of(kind: type[GardenApi], client: Client) -> GardenApi:
    return kind(cast("Any", client))


@pytest.mark.parametrize(
    ("served", "kind"),
    [(["shoots", "shoots/binding", "seeds"], AggregatedApi), (["shoots", "shoots/status"], PlainApi)],
)
def test_which_api_server_it_is_follows_from_what_it_serves(served: list[str], kind: type[GardenApi]) -> None:
    client = Client({("", SERVED): {**LIST, "resources": [{"name": name} for name in served]}})
    assert type(asyncio.run(recognized(cast("Any", client)))) is kind


@pytest.mark.parametrize(
    ("answer", "error"),
    [({"status": "ok"}, Unreachable), ({**LIST, "groupVersion": "v1"}, Unreachable), (LIST, KindNotServed)],
)
def test_what_it_is_does_not_follow_from_what_others_answer(answer: Object, error: type[KubeError]) -> None:
    with pytest.raises(error):
        asyncio.run(recognized(cast("Any", Client({("", SERVED): answer}))))


@pytest.mark.parametrize("kind", [AggregatedApi, PlainApi])
def test_an_operation_is_an_annotation(kind: type[GardenApi]) -> None:
    client = Client()
    asyncio.run(of(kind, client).operate(SHOOTS, Key("garden-dev", "s"), "retry"))
    patch = {"metadata": {"annotations": {"gardener.cloud/operation": "retry"}}}
    assert client.requested == [("patch", "shoots", "garden-dev", "s", patch)]


def test_a_shoot_is_bound_with_its_version_or_by_the_subresource() -> None:
    plain, aggregated = Client(), Client()
    asyncio.run(of(PlainApi, plain).bind(SHOOT, "seed"))
    asyncio.run(of(AggregatedApi, aggregated).bind(SHOOT, "seed"))
    patch = {"metadata": {"resourceVersion": "7"}, "spec": {"seedName": "seed"}}
    assert plain.requested == [("patch", "shoots", "garden-dev", "s", patch)]
    bound = {**SHOOT, "spec": {"purpose": "testing", "seedName": "seed"}}
    assert aggregated.requested == [("replace", "shoots", "binding", bound)]


def test_a_shoot_that_has_left_its_seed_is_taken_over() -> None:
    plain, aggregated = Client(), Client()
    asyncio.run(of(PlainApi, plain).migrated(SHOOT))
    asyncio.run(of(AggregatedApi, aggregated).migrated(SHOOT))
    assert [each[:4] for each in plain.requested] == [("patch", "shoots", "garden-dev", "s")]
    assert aggregated.requested == []


def confined(generation: int, *, sequence: int, observed: int = 1, deleting: bool = False) -> Object:
    meta = {"generation": generation, **({"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleting else {})}
    return {
        "metadata": meta,
        "spec": {"maintenance": {"confineSpecUpdateRollout": True}},
        "operation": {"sequence": sequence},
        "status": {"observedGeneration": 4, "observedOperationSequence": observed},
    }


@pytest.mark.parametrize(
    ("shoot", "needs_work", "is_due"),
    [
        (confined(4, sequence=1), False, False),
        (confined(5, sequence=1), True, False),
        (confined(6, sequence=2), True, True),
        (confined(5, sequence=1, deleting=True), True, True),
        ({"metadata": {"generation": 2}, "spec": {}, "status": {"observedGeneration": 1}}, True, True),
        ({"metadata": {"generation": 1}, "spec": {}}, True, True),
    ],
)
def test_what_is_confined_waits_for_the_window(shoot: Object, *, needs_work: bool, is_due: bool) -> None:
    plain = of(PlainApi, Client())
    assert (plain.needs_work(shoot), plain.is_due(shoot)) == (needs_work, is_due)
    assert of(AggregatedApi, Client()).is_due(shoot) == needs_work


# --- what is issued


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


@pytest.mark.parametrize(
    ("kind", "group"),
    [(AggregatedApi, "core.gardener.cloud/v1beta1"), (PlainApi, "authentication.gardener.cloud/v1alpha1")],
)
def test_a_kubeconfig_is_requested_where_the_garden_makes_it(kind: type[GardenApi], group: str) -> None:
    path = f"/apis/{group}/namespaces/garden-dev/shoots/s/viewerkubeconfig"
    answer = {"status": {"kubeconfig": encoded(b"config"), "expirationTimestamp": "2026-01-01T00:00:00Z"}}
    client = Client({("", path): answer})
    made = asyncio.run(of(kind, client).kubeconfig(SHOOT, Role.VIEWER, lifetime=HOUR))
    assert (made.content, made.expires) == (b"config", datetime(2026, 1, 1, tzinfo=UTC))
    assert "config=" not in repr(made)
    ((method, _, body),) = client.requested
    assert (method, body["kind"], body["spec"]) == ("POST", "ViewerKubeconfigRequest", {"expirationSeconds": 3600})


@pytest.mark.parametrize(
    ("kind", "group"),
    [(AggregatedApi, "security.gardener.cloud/v1alpha1"), (PlainApi, "authentication.gardener.cloud/v1alpha1")],
)
@pytest.mark.parametrize("created", ["2026-01-01T00:00:00Z", None])
def test_a_token_is_requested_where_the_garden_issues_it(
    kind: type[GardenApi], group: str, created: str | None
) -> None:
    path = f"/apis/{group}/namespaces/garden-dev/workloadidentities/wi/token"
    status = {"token": "hush", "expirationTimestamp": "2026-01-01T06:00:00Z"}
    client = Client({("", path): {"metadata": {"creationTimestamp": created}, "status": status}})
    identity, now = Key("garden-dev", "wi"), datetime(2026, 1, 1, tzinfo=UTC)
    token = asyncio.run(of(kind, client).token(identity, lifetime=HOUR, now=now, context={"kind": "Shoot"}))
    assert (token.text, token.lifetime) == ("hush", 6 * HOUR)
    assert "hush" not in repr(token)
    ((method, _, body),) = client.requested
    assert (method, body["kind"]) == ("POST", "TokenRequest")
    assert body["spec"] == {"expirationSeconds": 3600, "contextObject": {"kind": "Shoot"}}


@pytest.mark.parametrize(
    "answer",
    [
        {},
        [],
        None,
        {"status": {"token": "hush"}},
        {"status": {"token": "", "expirationTimestamp": "2026-01-01T06:00:00Z"}},
    ],
)
def test_an_answer_without_a_token_is_none(answer: Any) -> None:
    path = "/apis/security.gardener.cloud/v1alpha1/namespaces/n/workloadidentities/wi/token"
    requested = of(AggregatedApi, Client({("", path): answer})).token(
        Key("n", "wi"), lifetime=HOUR, now=datetime.now(UTC)
    )
    with pytest.raises(NotUnderstood, match="has no token"):
        asyncio.run(requested)
