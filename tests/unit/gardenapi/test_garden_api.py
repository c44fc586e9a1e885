"""What programs ask of a garden, of the original's API server and of a plain one."""

import asyncio
import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from gardenapi.api import AggregatedApi, GardenApi, NoKubeconfig, PlainApi, Role, recognized
from gardenapi.kubeconfigs import CannotIssue, issue
from gardener.api.garden import SHOOTS
from kube.errors import Forbidden, KindNotServed, KubeError, Unreachable
from kube.objects import Object
from localprocesses.pki import Authority

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
    """Records what it is asked; answers reads from `objects`, by kind and name."""

    def __init__(self, objects: dict[tuple[str, str], Object] | None = None, *, allowed: bool = True) -> None:
        self.objects = objects or {}
        self.allowed = allowed
        self.asked: list[tuple[Any, ...]] = []

    async def read(self, path: str) -> Object:
        self.asked.append(("read", path))
        return self.objects["", path]

    async def patch(self, resource: Any, name: str, body: Object, *, namespace: str = "") -> Object:
        self.asked.append(("patch", resource.plural, namespace, name, body))
        return body

    async def replace(self, resource: Any, obj: Object, *, subresource: str = "") -> Object:
        self.asked.append(("replace", resource.plural, subresource, obj))
        return obj

    async def request(self, method: str, path: str, *, body: Object) -> bytes:
        self.asked.append((method, path, body))
        return json.dumps(self.objects["", path]).encode()

    async def create(self, resource: Any, obj: Object) -> Object:
        self.asked.append(("create", resource.plural, obj))
        return {"status": {"allowed": self.allowed, "userInfo": {"username": "ann"}}}

    async def find(self, resource: Any, name: str, *, namespace: str) -> Object | None:
        assert namespace == "garden-dev"
        return self.objects.get((resource.kind, name))


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
    asyncio.run(of(kind, client).operate(SHOOTS, "s", "retry", namespace="garden-dev"))
    patch = {"metadata": {"annotations": {"gardener.cloud/operation": "retry"}}}
    assert client.asked == [("patch", "shoots", "garden-dev", "s", patch)]


def test_a_shoot_is_bound_with_its_version_or_by_the_subresource() -> None:
    plain, aggregated = Client(), Client()
    asyncio.run(of(PlainApi, plain).bind(SHOOT, "seed"))
    asyncio.run(of(AggregatedApi, aggregated).bind(SHOOT, "seed"))
    patch = {"metadata": {"resourceVersion": "7"}, "spec": {"seedName": "seed"}}
    assert plain.asked == [("patch", "shoots", "garden-dev", "s", patch)]
    bound = {**SHOOT, "spec": {"purpose": "testing", "seedName": "seed"}}
    assert aggregated.asked == [("replace", "shoots", "binding", bound)]


def test_a_shoot_that_has_left_its_seed_is_taken_over() -> None:
    plain, aggregated = Client(), Client()
    asyncio.run(of(PlainApi, plain).migrated(SHOOT))
    asyncio.run(of(AggregatedApi, aggregated).migrated(SHOOT))
    assert [each[:4] for each in plain.asked] == [("patch", "shoots", "garden-dev", "s")]
    assert aggregated.asked == []


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


# --- kubeconfigs


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority.create("clients")


def with_authority(authority: Authority, *, allowed: bool = True) -> Client:
    key = authority.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    data = {"ca.crt": encoded(authority.bundle), "ca.key": encoded(key)}
    known: dict[tuple[str, str], Object] = {
        ("InternalSecret", "s.ca-client"): {"data": data},
        ("ConfigMap", "s.ca-cluster"): {"data": {"ca.crt": "PEM"}},
    }
    return Client(known, allowed=allowed)


@pytest.mark.parametrize(
    ("role", "group"), [(Role.ADMIN, "system:masters"), (Role.VIEWER, "gardener.cloud:system:viewers")]
)
def test_a_kubeconfig_is_signed_for_its_user(authority: Authority, role: Role, group: str) -> None:
    made = asyncio.run(of(PlainApi, with_authority(authority)).kubeconfig(SHOOT, role, lifetime=HOUR))
    config = json.loads(made.content)
    (cluster,) = config["clusters"]
    assert cluster["cluster"] == {
        "server": "https://api.s.example.com",
        "certificate-authority-data": encoded(b"PEM"),
    }
    certificate = x509.load_pem_x509_certificate(
        base64.b64decode(config["users"][0]["user"]["client-certificate-data"])
    )
    assert certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)[0].value == group
    assert certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == "ann"
    certificate.verify_directly_issued_by(authority.certificate)
    assert abs(made.expires - datetime.now(UTC) - HOUR) < timedelta(minutes=5)
    assert "PRIVATE" not in repr(made)


@pytest.mark.parametrize(("asked", "given"), [(timedelta(seconds=1), timedelta(minutes=10)), (timedelta(days=9), timedelta(days=1))])  # fmt: skip
def test_a_kubeconfig_lives_between_ten_minutes_and_a_day(
    authority: Authority, asked: timedelta, given: timedelta
) -> None:
    made = asyncio.run(of(PlainApi, with_authority(authority)).kubeconfig(SHOOT, Role.ADMIN, lifetime=asked))
    assert abs(made.expires - datetime.now(UTC) - given) < timedelta(minutes=5)


def test_who_may_not_have_a_kubeconfig_gets_none(authority: Authority) -> None:
    client = with_authority(authority, allowed=False)
    with pytest.raises(Forbidden, match=r"you may not create shoots/adminkubeconfig"):
        asyncio.run(of(PlainApi, client).kubeconfig(SHOOT, Role.ADMIN, lifetime=HOUR))


@pytest.mark.parametrize(
    ("shoot", "missing", "message"),
    [
        ({**SHOOT, "status": {}}, None, "has no advertised address"),
        (SHOOT, ("ConfigMap", "s.ca-cluster"), "certificates of its API server are not known"),
        (SHOOT, ("InternalSecret", "s.ca-client"), "authority for clients is missing"),
    ],
)
def test_what_is_missing_for_a_kubeconfig_is_reported(
    authority: Authority, shoot: Object, missing: tuple[str, str] | None, message: str
) -> None:
    client = with_authority(authority)
    if missing:
        del client.objects[missing]
    with pytest.raises(NoKubeconfig, match=message):
        asyncio.run(of(PlainApi, client).kubeconfig(shoot, Role.ADMIN, lifetime=HOUR))


CERTIFICATES: dict[str, Any] = {"name": "s", "addresses": {"external": "https://s"}, "cluster": "PEM"}


def signed(authority: Object, *, now: datetime, lifetime: timedelta) -> datetime:
    _, expires = issue(**CERTIFICATES, authority=authority, user="ann", group="g", now=now, lifetime=lifetime)
    return expires


def data_of(certificate: Authority, key: Authority) -> Object:
    return {"ca.crt": encoded(certificate.bundle), "ca.key": encoded(key.key_pair().key)}


def test_a_kubeconfig_does_not_outlive_its_authority(authority: Authority) -> None:
    end, data = authority.certificate.not_valid_after_utc, data_of(authority, authority)
    assert signed(data, now=end - timedelta(minutes=30), lifetime=HOUR) == end
    assert signed(data, now=end - 2 * HOUR, lifetime=HOUR) == end - HOUR
    with pytest.raises(CannotIssue, match="has expired"):
        signed(data, now=end, lifetime=HOUR)


def test_a_key_of_another_authority_signs_nothing(authority: Authority) -> None:
    other = data_of(authority, Authority.create("other"))
    with pytest.raises(CannotIssue, match="a key that does not belong to its certificate"):
        signed(other, now=datetime.now(UTC), lifetime=HOUR)


def test_the_original_makes_kubeconfigs_itself() -> None:
    path = "/apis/core.gardener.cloud/v1beta1/namespaces/garden-dev/shoots/s/viewerkubeconfig"
    answer = {"status": {"kubeconfig": encoded(b"config"), "expirationTimestamp": "2026-01-01T00:00:00Z"}}
    client = Client({("", path): answer})
    made = asyncio.run(of(AggregatedApi, client).kubeconfig(SHOOT, Role.VIEWER, lifetime=HOUR))
    assert (made.content, made.expires) == (b"config", datetime(2026, 1, 1, tzinfo=UTC))
    ((method, _, body),) = client.asked
    assert (method, body["kind"], body["spec"]) == ("POST", "ViewerKubeconfigRequest", {"expirationSeconds": 3600})
