"""A gardenlet keeps its credentials for the garden valid: by renewal, by what operators store, by the right authority.

The garden is its own seed here, but where a gardenlet runs as a process of its own.
"""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agent.controller_manager.certificate_signing_request import declare
from agent.gardenlet.bootstrap import rotation as rotation_module
from agent.gardenlet.bootstrap.access import GardenAccess
from agent.gardenlet.bootstrap.entrance import enter
from agent.gardenlet.bootstrap.pace import Pace
from agent.gardenlet.bootstrap.rotation import GARDEN, Rotation
from agent.gardenlet.bootstrap.rules.certificate import Life
from agent.gardenlet.bootstrap.stored import of_content
from agent.gardenlet.bootstrap.trust import NotVerified, trusting
from gardener import keys
from gardener.api.garden import SEEDS
from gardener.garden.seeds import namespace_of
from kit.clock import FakeClock
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_controllers import run_garden_controller
from kit.gardenlet_bootstrap import BOOTSTRAP, KUBECONFIG, QUICK, Entry, quick
from kit.kubeconfigs import written
from kit.world import connected
from kube.clock import utc_now
from kube.objects import Object, annotations, condition, spec
from kube.resources import CERTIFICATE_SIGNING_REQUESTS, CONFIG_MAPS
from kube.runtime.server_clock import ServerClock
from kube.runtime.transport import Transport
from kube.signing_requests import DENIED, with_decision
from kube.x509 import make_ca
from process import clusters as process_clusters
from process.clusters import Endpoint
from process.runner import StartError

pytestmark = pytest.mark.timeout(600)

HOUR = timedelta(hours=1)
RENEW: Object = {"metadata": {"annotations": {keys.OPERATION: "renew"}}}


@pytest.fixture
def entry(garden: Garden) -> Entry:
    entry = Entry(garden, garden.cluster)
    entry.register()
    return entry


@pytest.fixture
async def approving(garden: Garden) -> AsyncIterator[None]:
    async with connected(garden.cluster) as operator, run_garden_controller(declare, operator):
        yield


@asynccontextmanager
async def running(
    entry: Entry, *, pace: Pace = QUICK, authority: str = ""
) -> AsyncIterator[tuple[GardenAccess, Rotation]]:
    """Args: authority: that is configured, PEM."""
    setting = base64.b64encode(authority.encode()).decode()
    async with entry.access(pace=pace, garden_cluster_ca_cert=setting) as access:
        rotation = await enter(access, entry.seed_config)
        await rotation.start()
        try:
            yield access, rotation
        finally:
            await rotation.stop()


def requests_of(entry: Entry) -> list[Object]:
    listed = entry.garden.cluster.api.get(CERTIFICATE_SIGNING_REQUESTS.path())["items"]
    users = {entry.user, f"system:bootstrap:{entry.token_id}"}
    return [each for each in listed if spec(each)["username"] in users]


def events_of(entry: Entry) -> list[Object]:
    path = f"/api/v1/namespaces/default/events?fieldSelector=involvedObject.name={entry.name}"
    listed: list[Object] = entry.garden.cluster.api.get(path)["items"]
    return listed


def life_of(entry: Entry) -> Life:
    life = entry.stored().life
    assert life is not None
    return life


def said_of(entry: Entry) -> Object | None:
    return condition(entry.registered(), "GardenletCertificate")


def valid(entry: Entry, lifetime: timedelta = HOUR, *, ca: str = "") -> bytes:
    return entry.with_certificate(since=utc_now() - timedelta(minutes=1), lifetime=lifetime, ca=ca)


def expired(entry: Entry) -> bytes:
    return entry.with_certificate(since=utc_now() - 2 * HOUR, lifetime=HOUR)


# --- expired


async def test_with_an_expired_certificate_a_gardenlet_waits_and_reports_for_what(entry: Entry) -> None:
    entry.put(KUBECONFIG, expired(entry))
    with entry.process() as gardenlet:
        body = await soon(lambda: _reason(gardenlet.probe("/readyz/garden-credentials")), "the reason to be reported")
        until = life_of(entry).until
        for part in (f"Secret {entry.namespace}/{KUBECONFIG}", f"seed {entry.name}", f"{until:%Y-%m-%dT%H:%M:%SZ}"):
            assert part in body
        assert f"store a bootstrap kubeconfig in the Secret {entry.namespace}/{BOOTSTRAP}" in body
        assert gardenlet.probe("/readyz")[0] == 500
        assert gardenlet.probe("/healthz")[0] == 200
        entry.put(KUBECONFIG, valid(entry))
        gardenlet.wait_until_ready()
        assert gardenlet.process.poll() is None
    reported = [each for each in gardenlet.messages() if "No valid credentials" in each]
    assert len(reported) == 1


def _reason(answer: tuple[int, str]) -> str:
    status, body = answer
    return body if status == 500 and "expired" in body else ""


async def test_with_an_expired_certificate_a_bootstrap_kubeconfig_is_used(entry: Entry, approving: None) -> None:
    entry.put(KUBECONFIG, expired(entry))
    entry.put(BOOTSTRAP, entry.with_token(entry.token_id))
    async with running(entry):
        assert not life_of(entry).is_over(utc_now())
        assert not entry.exists(BOOTSTRAP)


async def test_a_certificate_that_expires_meanwhile_is_replaced_without_a_restart(garden: Garden, entry: Entry) -> None:
    entry.put(KUBECONFIG, entry.with_certificate(since=utc_now() - HOUR, lifetime=HOUR + timedelta(seconds=4)))
    before = entry.stored().content
    async with running(entry) as (access, _):
        # It is to be renewed long since, but nothing is approved.
        await soon(lambda: access.credentials.problem, "the certificate to expire")
        assert [each["status"] for each in [said_of(entry)] if each] == ["False"]
        entry.put(BOOTSTRAP, entry.with_token(entry.token_id))
        async with connected(garden.cluster) as operator, run_garden_controller(declare, operator):
            await soon(lambda: not access.credentials.problem, "the state to be good")
        assert entry.stored().content != before
        assert await access.clusters[GARDEN].client.get(SEEDS, entry.name)
        await soon(lambda: not entry.exists(BOOTSTRAP), "the bootstrap kubeconfig to go")


# --- renewal


async def test_a_certificate_is_renewed_when_it_is_due(entry: Entry, approving: None) -> None:
    entry.put(KUBECONFIG, entry.with_certificate(since=utc_now() - HOUR, lifetime=HOUR * 1.05))
    before = entry.stored()
    async with running(entry) as (access, _):
        await soon(lambda: entry.stored().content != before.content, "another certificate")
        # It was scarce already.
        await soon(lambda: (said_of(entry) or {}).get("status") == "True", "the Seed to report so")
        assert access.credentials.life == entry.stored().life
        until = f"{life_of(entry).until:%Y-%m-%dT%H:%M:%SZ}"
        assert entry.registered()["status"]["clientCertificateExpirationTimestamp"] == until
    (request,) = requests_of(entry)
    assert spec(request)["username"] == entry.user


async def test_a_renewal_that_is_denied_is_reported_and_tried_again_after_a_quarter_of_an_hour(
    garden: Garden, entry: Entry
) -> None:
    entry.put(KUBECONFIG, valid(entry))
    entry.patch(KUBECONFIG, RENEW)
    clock = FakeClock()
    async with (
        connected(garden.cluster) as operator,
        running(entry, pace=Pace(now=clock, sleep=quick)),
    ):
        (request,) = await soon(lambda: requests_of(entry), "a request")
        denied = with_decision(request, DENIED, "Policy", "not now")
        await operator.replace(CERTIFICATE_SIGNING_REQUESTS, denied, subresource="approval")
        (event,) = await soon(lambda: events_of(entry), "an Event")
        assert (event["type"], event["reason"]) == ("Warning", "GardenletCertificateRotationFailed")
        assert "Certificate expires in 5" in event["message"]
        assert event["message"].endswith("it is denied: Policy: not now")
        said = await soon(lambda: said_of(entry), "the Seed to report so")
        assert said["status"] == "True"
        assert "not now" in said["message"]
        clock.now += 890
        await asyncio.sleep(0.3)
        assert len(requests_of(entry)) == 1
        clock.now += 20
        await soon(lambda: len(requests_of(entry)) == 2, "the next request")
    assert annotations(entry.secret(KUBECONFIG)) == {keys.OPERATION: "renew"}, "it is still requested"


async def test_a_kubeconfig_that_an_operator_stores_is_used_at_once(entry: Entry) -> None:
    entry.put(KUBECONFIG, valid(entry))
    async with running(entry) as (access, _):
        entry.put(KUBECONFIG, valid(entry, 3 * HOUR))
        life = entry.stored().life
        await soon(lambda: access.credentials.life == life, "the other certificate to be used")
        assert await access.clusters[GARDEN].client.get(SEEDS, entry.name)
        # What can't be used, or not any more, changes nothing.
        for unusable in (b"nonsense", expired(entry)):
            entry.put(KUBECONFIG, unusable)
            await asyncio.sleep(0.2)
        assert access.credentials.life == life
        assert await access.clusters[GARDEN].client.get(SEEDS, entry.name)
    assert requests_of(entry) == []


async def test_a_kubeconfig_for_another_address_ends_the_process_to_start_again(entry: Entry) -> None:
    entry.put(KUBECONFIG, valid(entry))
    async with running(entry) as (access, rotation):
        elsewhere = replace(entry, server="https://127.0.0.1:1")
        elsewhere.put(KUBECONFIG, valid(elsewhere))
        with pytest.raises(StartError, match="can't be replaced by one to https://127.0.0.1:1"):
            await rotation.wait()
        assert await access.clusters[GARDEN].client.get(SEEDS, entry.name)


async def test_a_certificate_in_a_file_is_renewed_into_the_secret(
    entry: Entry, approving: None, tmp_path: Path
) -> None:
    content = entry.with_certificate(since=utc_now() - HOUR, lifetime=HOUR * 1.05)
    file = written(tmp_path / "kubeconfig", content)
    settings = replace(entry.settings(), bootstrap_kubeconfig=None, kubeconfig=str(file))
    async with entry.access(pace=QUICK) as access:
        access.settings = settings
        rotation = await enter(access, entry.seed_config)
        assert access.credentials.life == of_content(content, origin="of the test").life
        await rotation.start()
        try:
            await soon(lambda: entry.exists(KUBECONFIG), "the certificate to be stored")
            await soon(lambda: access.credentials.life == entry.stored().life, "it to be used")
        finally:
            await rotation.stop()


async def test_nothing_is_queried_while_nothing_changes(entry: Entry, monkeypatch: pytest.MonkeyPatch) -> None:
    requested: list[str] = []

    class Counting(Transport):
        def send(self, method: str, path: str, **options: Any) -> Any:
            requested.append(f"{method} {path}")
            return super().send(method, path, **options)

    monkeypatch.setattr(process_clusters, "Transport", Counting)
    entry.put(KUBECONFIG, valid(entry))
    async with running(entry):
        await asyncio.sleep(0.5)
        requested.clear()
        await asyncio.sleep(0.5)  # ten rounds
        assert requested == []


# --- the authority


def stranger() -> str:
    return make_ca("stranger", now=utc_now(), lifetime=HOUR).certificate_pem.decode()


async def test_the_configured_authority_is_stored_when_it_verifies_the_server(entry: Entry) -> None:
    entry.put(KUBECONFIG, valid(entry, ca=stranger()))
    async with running(entry, authority=entry.garden.cluster.ca):
        stored = entry.stored()
        assert base64.b64decode(stored.cluster["certificate-authority-data"]).decode() == entry.garden.cluster.ca
        assert set(stored.cluster) == {"certificate-authority-data", "server"}


async def test_a_configured_authority_that_does_not_fit_is_reported_and_not_stored(entry: Entry) -> None:
    content = valid(entry)
    entry.put(KUBECONFIG, content)
    async with running(entry, authority=stranger()) as (access, _):
        (event,) = await soon(lambda: events_of(entry), "an Event")
        assert event["reason"] == "GardenAuthorityNotFitting"
        assert "gardenClusterCACert" in event["message"]
        assert entry.stored().content == content
        assert await access.clusters[GARDEN].client.get(SEEDS, entry.name)


async def test_the_authority_that_the_garden_publishes_is_taken_over(garden: Garden, entry: Entry) -> None:
    """As after the first stage of its rotation, and after the last one."""
    await soon(lambda: published(entry), "the bundle to be published")
    entry.put(KUBECONFIG, valid(entry, ca=garden.cluster.ca + stranger()))
    async with running(entry) as (access, _):

        def is_taken_over() -> bool:
            data = base64.b64decode(entry.stored().cluster["certificate-authority-data"]).decode()
            return data.strip() == garden.cluster.ca.strip()

        await soon(is_taken_over, "the published bundle to be stored")
        assert await access.clusters[GARDEN].client.get(SEEDS, entry.name)


async def test_an_authority_that_may_not_be_read_is_requested_once(
    garden: Garden, entry: Entry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with another authorizer than ours: here with the certificate of another Seed."""
    monkeypatch.setattr(rotation_module, "AUTHORITY_SECONDS", 0.01)
    looks, look = 0, Rotation._look_at_authority

    async def counted(rotation: Rotation) -> None:
        nonlocal looks
        await look(rotation)
        looks += 1

    monkeypatch.setattr(Rotation, "_look_at_authority", counted)
    kubeconfig = of_content(valid(Entry(garden, garden.cluster)), origin="of another Seed")
    async with entry.access() as access:
        access.clusters.open(Endpoint((GARDEN,), kubeconfig.connection, access.settings))
        rotation = Rotation(access=access, kubeconfig=kubeconfig, seed=entry.registered())
        with closing(garden.cluster.audit()) as audit:
            since = audit.mark()
            await rotation.start()
            try:
                await soon(lambda: looks > 3, "several looks")
            finally:
                await rotation.stop()
            read = [each for each in audit.calls(since=since, verbs=["get"]) if each.name == "kube-root-ca.crt"]
        assert len(read) == 1
        assert access.clusters[GARDEN].caches.refused() == {CONFIG_MAPS}


def published(entry: Entry) -> bool:
    path = CONFIG_MAPS.path(namespace=namespace_of(entry.name), name="kube-root-ca.crt")
    status: int = entry.garden.cluster.api.raw("GET", path)[0]
    return status == 200


async def test_a_server_that_can_not_be_verified_is_never_trusted(entry: Entry) -> None:
    kubeconfig = of_content(valid(entry), origin="of the test")
    async with entry.access() as access:
        with pytest.raises(NotVerified, match="certificate"):
            await trusting(access.clusters, kubeconfig, stranger().encode(), access.settings, origin="of the test")
        assert GARDEN not in access.clusters


# --- a clock that is wrong


@pytest.mark.parametrize("ahead", [timedelta(hours=1), timedelta(hours=-1)])
async def test_the_clock_of_the_api_server_counts(
    entry: Entry, approving: None, monkeypatch: pytest.MonkeyPatch, ahead: timedelta
) -> None:
    class OtherClock(Transport):
        def __init__(self, connection: Any) -> None:
            super().__init__(connection)
            self.clock = ServerClock(lambda: utc_now() + ahead)

    monkeypatch.setattr(process_clusters, "Transport", OtherClock)
    content = entry.with_certificate(since=utc_now() - HOUR / 12, lifetime=HOUR)
    entry.put(KUBECONFIG, content)
    async with running(entry) as (access, _):
        await asyncio.sleep(0.3)
        assert not access.credentials.problem
        assert entry.stored().content == content
    entry.put(KUBECONFIG, expired(entry))
    entry.put(BOOTSTRAP, entry.with_token(entry.token_id))
    async with running(entry):
        assert not life_of(entry).is_over(utc_now())
