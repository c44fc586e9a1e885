"""Tokens of WorkloadIdentities, requested from the API server of a garden, which passes requests on to the server of tokens."""

import base64
import http.client
import ssl
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import orjson
import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from gardenapi.api import recognized
from gardener import keys
from gardener.api.garden import AUTHENTICATION_API, CREDENTIALS_BINDINGS, PROJECTS, SEEDS, SHOOTS, WORKLOAD_IDENTITIES
from kit.eventually import eventually
from kit.garden import Garden
from kit.garden_shoots import ShootPlace
from kit.world import connected
from kube.clock import utc_now
from kube.errors import ApiError, Forbidden, NotFound
from kube.objects import Key, Object, metadata, uid
from kube.resources import API_SERVICES, SECRETS, Resource
from localprocesses.pki import Authority
from webhooks.admission import User
from webhooks.garden.access import Access
from webhooks.tokens.identities import IdentityTokens
from webhooks.tokens.issuer import CannotIssue, Issuers

pytestmark = pytest.mark.timeout(600)

ROOT = f"/apis/{AUTHENTICATION_API}"
TOKENS = Resource(
    WORKLOAD_IDENTITIES.group, WORKLOAD_IDENTITIES.version, "TokenRequest", "workloadidentities/token", True
)
CREDENTIALS: Object = {"secretBindingName": None, "credentialsBindingName": "wi"}


@pytest.fixture
def place(garden: Garden) -> Iterator[ShootPlace]:
    """With the WorkloadIdentity `wi`, and the Shoot `s`, which uses it, on a Seed."""
    place = ShootPlace(garden)
    place.create(WORKLOAD_IDENTITIES, "wi", spec={"audiences": ["cloud"], "targetSystem": {"type": "local"}})
    wi = {**WORKLOAD_IDENTITIES.type_meta, "namespace": place.namespace, "name": "wi"}
    place.create(CREDENTIALS_BINDINGS, "wi", provider={"type": place.name}, credentialsRef=wi)
    place.shoot("s", seedName=place.seed(), **CREDENTIALS)
    yield place
    place.remove()


def path_of(place: ShootPlace, name: str = "wi") -> str:
    return f"{ROOT}/namespaces/{place.namespace}/workloadidentities/{name}/token"


def requested(place: ShootPlace, *, user: str = "", group: str = "system:authenticated", **spec: Any) -> Object:
    """The answer. Raises ApiError."""
    who = {"Impersonate-User": user, "Impersonate-Group": group} if user else {}
    answer: Object = place.garden.cluster.api.request("POST", path_of(place), {"spec": spec}, headers=who)
    return answer


def has_token(place: ShootPlace, **asked: Any) -> bool:
    try:
        return bool(requested(place, **asked))
    except Forbidden:
        return False


def claims_in(answer: Object) -> Object:
    claims: Object = orjson.loads(decoded(answer["status"]["token"].split(".")[1]))
    return claims


def decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "==")


def gardenlet_of(seed: str) -> dict[str, str]:
    return {"user": f"{keys.SEED_USER_PREFIX}{seed}", "group": keys.SEEDS_GROUP}


def reference(obj: Object) -> Object:
    meta = metadata(obj)
    place = {"namespace": meta["namespace"]} if "namespace" in meta else {}
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": meta["name"], "uid": meta["uid"], **place}


class Direct:
    """Talks to the server of tokens itself, as only the API server should."""

    def __init__(self, garden: Garden) -> None:
        registered = garden.get(API_SERVICES, ".".join(reversed(AUTHENTICATION_API.split("/"))))["spec"]
        self._port = registered["service"]["port"]
        self._context = ssl.create_default_context(cadata=base64.b64decode(registered["caBundle"]).decode())

    def ask(self, method: str, path: str, *, headers: dict[str, str] | None = None) -> tuple[int, Object]:
        connection = http.client.HTTPSConnection("127.0.0.1", self._port, timeout=30, context=self._context)
        try:
            connection.request(method, path, headers=headers or {})
            response = connection.getresponse()
            return response.status, orjson.loads(response.read())
        finally:
            connection.close()

    def show(self, certificate: str, key: str) -> None:
        self._context.load_cert_chain(certificate, key)


def test_a_token_is_for_the_identity_and_verified_with_what_is_published(place: ShootPlace) -> None:
    answer = requested(place, expirationSeconds=21600)
    claims = claims_in(answer)
    identity = place.get(WORKLOAD_IDENTITIES, "wi")
    assert claims["aud"] == ["cloud"]
    assert claims["sub"] == f"gardener.cloud:workloadidentity:{place.namespace}:wi:{uid(identity)}"
    assert claims["exp"] - claims["iat"] == 21600
    assert claims["gardener.cloud"] == {
        "workloadIdentity": {"name": "wi", "namespace": place.namespace, "uid": uid(identity)}
    }
    direct = Direct(place.garden)
    status, configuration = direct.ask("GET", "/.well-known/openid-configuration")
    assert (status, configuration["issuer"]) == (200, claims["iss"])
    assert configuration["jwks_uri"] == f"{claims['iss']}/jwks"
    status, published = direct.ask("GET", "/jwks")
    (key,) = published["keys"]
    n, e = (int.from_bytes(decoded(key[part]), "big") for part in ("n", "e"))
    signed, _, signature = answer["status"]["token"].rpartition(".")
    verify = partial(rsa.RSAPublicNumbers(e, n).public_key().verify, decoded(signature))
    verify(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
    with pytest.raises(InvalidSignature):
        verify(signed.encode() + b"x", padding.PKCS1v15(), hashes.SHA256())


def test_a_gardenlet_names_the_shoot_that_it_uses_the_token_for(place: ShootPlace) -> None:
    shoot, seed = place.get(SHOOTS, "s"), place.get(SEEDS, place.name)
    answer = requested(place, **gardenlet_of(place.name), contextObject=reference(shoot))
    named = claims_in(answer)["gardener.cloud"]
    assert named["shoot"] == {"name": "s", "namespace": place.namespace, "uid": uid(shoot)}
    assert named["seed"] == {"name": place.name, "uid": uid(seed)}
    assert named["project"] == {"name": place.name, "uid": uid(place.get(PROJECTS, place.name))}
    answer = requested(place, **gardenlet_of(place.name), contextObject=reference(seed))
    named = claims_in(answer)["gardener.cloud"]
    assert "shoot" not in named
    assert named["seed"] == {"name": place.name, "uid": uid(seed)}


def test_others_can_not_report_what_a_token_is_for(place: ShootPlace) -> None:
    answer = requested(place, contextObject=reference(place.get(SHOOTS, "s")))
    assert set(claims_in(answer)["gardener.cloud"]) == {"workloadIdentity"}


def test_a_gardenlet_gets_no_token_for_the_shoot_of_another(place: ShootPlace) -> None:
    other = place.seed("-2")
    foreign = gardenlet_of(other)
    with pytest.raises(Forbidden, match="cannot create workloadidentities/token"):
        requested(place, **foreign)
    place.shoot("other", seedName=other, **CREDENTIALS)
    eventually(lambda: has_token(place, **foreign), "the right to tokens for the other Shoot")
    for resource, name in ((SHOOTS, "s"), (SEEDS, place.name)):
        with pytest.raises(Forbidden, match=f'is not on seed "{place.name}-2"'):
            requested(place, **foreign, contextObject=reference(place.get(resource, name)))


@pytest.mark.parametrize(
    ("changed", "status", "message"),
    [
        ({"uid": "other"}, 422, "has another uid"),
        ({"name": "gone"}, 404, "not found"),
        ({"kind": "Secret", "apiVersion": "v1"}, 422, "must be a Shoot, with its namespace, or a Seed"),
        ({"namespace": ""}, 422, "must be a Shoot, with its namespace, or a Seed"),
    ],
)
def test_an_object_that_is_not_there_is_refused(place: ShootPlace, changed: Object, status: int, message: str) -> None:
    context = reference(place.get(SHOOTS, "s")) | changed
    with pytest.raises(ApiError, match=message) as raised:
        requested(place, **gardenlet_of(place.name), contextObject=context)
    assert raised.value.status == status


def test_a_user_needs_the_right(place: ShootPlace) -> None:
    user = f"jane-{place.name}"
    with pytest.raises(
        Forbidden, match=f'user "{user}" cannot create workloadidentities/token of "{place.namespace}/wi"'
    ):
        requested(place, user=user)
    place.garden.allow(user, "create", TOKENS)
    eventually(lambda: has_token(place, user=user), "the token")


def test_what_is_not_there_is_not_found(place: ShootPlace) -> None:
    api = place.garden.cluster.api
    for path in (
        path_of(place, "gone"),
        path_of(place, "gone%2Fwi"),
        f"{ROOT}/namespaces/x/shoots/s/token",
        f"{ROOT}/x",
    ):
        with pytest.raises(NotFound):
            api.request("POST", path, {})
    assert api.raw("GET", path_of(place))[0] == 405
    assert api.raw("POST", path_of(place), {"kind": "Pod"})[0] == 400
    assert api.raw("POST", path_of(place), {"spec": "x" * (64 << 10)})[0] == 413


def test_who_is_not_the_api_server_is_believed_nothing(place: ShootPlace, tmp_path: Any) -> None:
    root = {"X-Remote-User": "root", "X-Remote-Group": "system:masters"}
    direct = Direct(place.garden)
    assert direct.ask("POST", path_of(place), headers=root)[0] == 401
    assert direct.ask("GET", ROOT, headers=root)[0] == 401
    # Neither is a client of the cluster, nor one whose name is the proxy's, but not its authority.
    for authority in (place.garden.cluster.authority, Authority.create("another")):
        files = authority.issue_client("front-proxy", ["system:masters"]).write(tmp_path, "client")
        direct = Direct(place.garden)
        direct.show(str(files.certificate), str(files.key))
        with pytest.raises((ssl.SSLError, ConnectionError, http.client.HTTPException)):
            direct.ask("POST", path_of(place), headers=root)


async def test_programs_ask_for_tokens_without_knowing_the_kind_of_garden(place: ShootPlace) -> None:
    identity, hours = Key(place.namespace, "wi"), timedelta(hours=6)
    async with connected(place.garden.cluster, place.name) as client:
        garden = await recognized(client)
        token = await garden.token(identity, lifetime=hours, now=utc_now())
        assert token.lifetime == hours
        assert token.text not in repr(token)
        claims = orjson.loads(decoded(token.text.split(".")[1]))
        assert claims["aud"] == ["cloud"]
        with pytest.raises(NotFound, match="gone"):
            await garden.token(Key(place.namespace, "gone"), lifetime=hours, now=utc_now())


async def test_a_missing_or_unusable_key_is_named_and_used_when_it_is_mended(place: ShootPlace) -> None:
    secret = Key(place.namespace, "issuer")
    clock = [0.0]
    user = User("root", ("system:masters",))
    async with connected(place.garden.cluster, place.name) as client:
        issuers = Issuers(client, secret=secret, clock=lambda: clock[0])
        tokens = IdentityTokens(client=client, access=Access(client), issuers=issuers)
        ask = partial(tokens.request, user, Key(place.namespace, "wi"), {})
        with pytest.raises(CannotIssue, match=f"Secret {secret} does not exist; put the URL"):
            await ask()
        place.create(SECRETS, secret.name, stringData={"issuer": "https://x", "key.pem": "sesame"})
        clock[0] += 31
        with pytest.raises(CannotIssue, match=f"Secret {secret} has a key key.pem that is not a private key"):
            await ask()
        used = place.garden.get(SECRETS, "workload-identity-issuer", namespace="garden")
        place.patch(SECRETS, secret.name, {"data": used["data"]})
        with pytest.raises(CannotIssue):
            await ask()
        clock[0] += 31
        assert (await ask())["status"]["token"]
