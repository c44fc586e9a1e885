"""The whole gardenlet as a process while its garden, its seed or both are away, or answer what no API server answers.

It lives on, its seed is cared for, nothing is deleted or recreated, and what was missed is made up for without a burst.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agent.controller_manager.certificate_signing_request import declare
from config.gardenlet.schema import COMPONENTS
from devcluster.audit import Audit, Call
from devcluster.cluster import Cluster
from devcluster.testing.faults import STRANGERS, Rule
from devcluster.testing.proxy import FaultProxy
from devcluster.testing.pytest_plugin import RunClusters
from gardener import keys
from gardener.garden.seeds import LEASE_NAMESPACE, namespace_of
from gardener.network_policies import DENY_ALL
from kit.eventually import eventually, soon
from kit.garden import Garden
from kit.garden_controllers import run_garden_controller
from kit.gardenlet_bootstrap import BOOTSTRAP, KUBECONFIG, Entry
from kit.gardenlet_seeds import GARDEN, SeedPlace
from kit.processes.agent import AgentProcess
from kit.proxied import proxy_to
from kit.relay import Relay
from kit.world import connected
from kube.clock import parse_time, utc_now
from kube.errors import AlreadyExists, NotFound
from kube.objects import Object, annotations, condition, metadata, uid
from kube.paths import at
from kube.resources import CONFIG_MAPS, ENDPOINTS, LEASES, NAMESPACES, NETWORK_POLICIES, SECRETS, SERVICE_ACCOUNTS

pytestmark = pytest.mark.timeout(600)

HOUR = timedelta(hours=1)
WRONG = 3600.0
"""Seconds."""
MOST_REPEATED = 10
"""When a cluster is back: each watch starts again, of which some kinds have several."""
MANY = 15
READS = ("get", "list", "watch")


@pytest.fixture(scope="module")
def seed_cluster(devcluster_run: RunClusters) -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def place(garden: Garden, seed_cluster: Cluster) -> Iterator[SeedPlace]:
    with suppress(AlreadyExists):
        garden.create(NAMESPACES, LEASE_NAMESPACE)
    subset = {"addresses": [{"ip": "192.0.2.1"}], "ports": [{"name": "https", "port": 443, "protocol": "TCP"}]}
    with suppress(AlreadyExists):
        # Network policies follow from it.
        body: Object = {"metadata": {"name": "kubernetes"}, "subsets": [subset]}
        seed_cluster.api.create(ENDPOINTS.path(namespace="default"), body)
    place = SeedPlace(garden, seed_cluster)
    yield place
    place.remove()


def renewed(garden: Garden, name: str) -> datetime:
    """When the Lease was, at last."""
    try:
        found = garden.get(LEASES, name, namespace=LEASE_NAMESPACE)
    except NotFound:
        return datetime.min.replace(tzinfo=utc_now().tzinfo)
    return parse_time(found["spec"]["renewTime"])


def beats(garden: Garden, name: str, gardenlet: AgentProcess) -> None:
    """Waits for heartbeats that began from now on."""
    for _ in range(2):
        before = renewed(garden, name)
        gardenlet.wait_for(lambda: renewed(garden, name) != before, what="a heartbeat")  # noqa: B023 - at once


def probes(gardenlet: AgentProcess) -> tuple[int, int]:
    """Whether it is healthy, and ready."""
    return gardenlet.probe("/healthz")[0], gardenlet.probe("/readyz")[0]


@dataclass
class Roads:
    """A gardenlet, and its ways to both clusters."""

    place: SeedPlace
    gardenlet: AgentProcess
    to_garden: Relay
    to_seed: Relay
    garden_calls: Audit
    seed_calls: Audit

    def marks(self) -> tuple[int, int]:
        return self.garden_calls.mark(), self.seed_calls.mark()

    def calls(self, since: tuple[int, int]) -> tuple[list[Call], list[Call]]:
        """Of the gardenlet, in the garden and in the seed."""
        found = [
            audit.calls(since=mark, user_agent="gardenlet/", leases=True, watches=True)
            for audit, mark in zip((self.garden_calls, self.seed_calls), since, strict=True)
        ]
        user = f"{keys.SEED_USER_PREFIX}{self.place.name}"
        return [each for each in found[0] if each.user == user], found[1]

    def restores_policies(self) -> None:
        path = NETWORK_POLICIES.path(namespace=GARDEN, name=DENY_ALL)
        before = uid(self.place.cluster.api.get(path))
        self.place.cluster.api.delete(path)
        self.gardenlet.wait_for(lambda: uid(self.place.find(path) or {}) not in {"", before}, what="the policy")


@contextmanager
def roads(place: SeedPlace, directory: Path, **options: Any) -> Iterator[Roads]:
    with ExitStack() as stack:
        garden, seed = place.garden.cluster, place.cluster
        to_garden, to_seed = (stack.enter_context(Relay(each.url)) for each in (garden, seed))
        audits = [stack.enter_context(closing(each.audit())) for each in (garden, seed)]
        stack.enter_context(place.resource_manager())
        kubeconfig = to_garden.kubeconfig(place.garden.gardenlet_kubeconfig(place.name), directory / "garden")
        process = place.process(
            kubeconfig=to_seed.kubeconfig(seed.kubeconfig, directory / "seed"),
            gardenClientConnection={"kubeconfig": str(kubeconfig)},
            **options,
        )
        gardenlet = stack.enter_context(process)
        place.finished()
        beats(place.garden, place.name, gardenlet)
        yield Roads(place, gardenlet, to_garden, to_seed, *audits)


def most_repeated(calls: list[Call]) -> int:
    """How often the call was made that was made most often. Heartbeats don't count."""
    made = Counter((each.verb, each.resource, each.namespace) for each in calls if each.resource != "leases")
    return max(made.values(), default=0)


def writes(calls: list[Call]) -> set[tuple[str, str]]:
    return {(each.verb, each.resource) for each in calls if each.verb not in READS}


def test_a_gardenlet_outlives_its_garden_and_its_seed(place: SeedPlace, tmp_path: Path) -> None:
    with roads(place, tmp_path) as road:
        pid, before = road.gardenlet.pid, road.place.seed
        road.restores_policies()
        for closed in ([road.to_garden], [road.to_seed], [road.to_garden, road.to_seed]):
            for each in closed:
                each.close_road()
            road.gardenlet.wait_for(lambda: probes(road.gardenlet)[0] == 500, what="the failure to be reported")
            if road.to_seed not in closed:
                road.restores_policies()
            since = road.marks()
            for each in closed:
                each.open_road()
            beats(place.garden, place.name, road.gardenlet)
            road.gardenlet.wait_for(lambda: probes(road.gardenlet) == (200, 200), what="it to be well")
            road.restores_policies()
            in_garden, in_seed = road.calls(since)
            assert most_repeated(in_garden) <= MOST_REPEATED
            assert most_repeated(in_seed) <= MOST_REPEATED
            assert writes(in_garden) <= {("patch", "leases"), ("patch", "seeds/status")}
            assert writes(in_seed) <= {("create", "networkpolicies")}
        after = road.place.seed
        assert (uid(after), metadata(after)["generation"]) == (uid(before), metadata(before)["generation"])
        assert road.gardenlet.pid == pid
        assert road.gardenlet.process.poll() is None


# --- the certificate


def is_over(entry: Entry) -> bool:
    life = entry.stored().life
    return life is not None and life.is_over(utc_now())


async def test_a_certificate_that_expires_while_the_garden_is_away_is_replaced_in_the_running_process(
    garden: Garden, seed_cluster: Cluster
) -> None:
    with suppress(NotFound):
        # It has the networks of other Seeds.
        seed_cluster.api.delete(CONFIG_MAPS.path(namespace="kube-system", name="shoot-info"))
    with Relay(garden.cluster.url) as road:
        entry = Entry(garden, seed_cluster, server=road.url)
        valid = partial(entry.with_certificate, since=utc_now(), lifetime=HOUR)
        entry.put(KUBECONFIG, valid())
        async with connected(garden.cluster) as operator, run_garden_controller(declare, operator):
            with entry.process(omit={"seed": list(COMPONENTS)}) as gardenlet:
                await asyncio.to_thread(beats, garden, entry.name, gardenlet)
                await asyncio.to_thread(expires_while_away, entry, gardenlet, road)
                # An operator puts another kubeconfig there, before the garden is back.
                entry.put(KUBECONFIG, valid())
                ready = partial(gardenlet.wait_for, lambda: gardenlet.probe("/readyz")[0] == 200, what="its use")
                await asyncio.to_thread(ready)
                road.open_road()
                await asyncio.to_thread(beats, garden, entry.name, gardenlet)

                await asyncio.to_thread(expires_while_away, entry, gardenlet, road)
                entry.put(BOOTSTRAP, entry.with_token(entry.token_id))
                road.open_road()
                await asyncio.to_thread(beats, garden, entry.name, gardenlet)
                assert not is_over(entry)
                gone = partial(gardenlet.wait_for, lambda: not entry.exists(BOOTSTRAP), what="the token to go")
                await asyncio.to_thread(gone)
                await asyncio.to_thread(ready)
                assert gardenlet.process.poll() is None


def log_count(gardenlet: AgentProcess, text: str) -> int:
    return gardenlet.log.count(text)


def expires_while_away(entry: Entry, gardenlet: AgentProcess, road: Relay) -> None:
    """The process gets a certificate that is soon over; what it waits for then is reported by the log."""
    expired = partial(log_count, gardenlet, "No valid credentials for the garden")
    adopted = partial(log_count, gardenlet, "Using a new kubeconfig for the garden")
    refused = partial(log_count, gardenlet, "The certificate of the new kubeconfig has expired")
    road.close_road()
    reports, adoptions = expired(), adopted()
    while adopted() == adoptions:
        refusals = refused()
        entry.put(KUBECONFIG, entry.with_certificate(since=utc_now(), lifetime=timedelta(seconds=5)))
        gardenlet.wait_for(lambda: adopted() > adoptions or refused() > refusals, what="a look")  # noqa: B023 - at once
    gardenlet.wait_for(
        lambda: gardenlet.probe("/readyz")[0] == 500 and expired() > reports, what="the expiry to be reported"
    )
    assert is_over(entry)
    assert f"{entry.namespace}/{KUBECONFIG}" in gardenlet.log
    assert gardenlet.process.poll() is None


# --- clocks


@pytest.mark.parametrize("ahead", [WRONG, -WRONG], ids=["ahead", "behind"])
def test_the_clocks_of_the_servers_count(place: SeedPlace, tmp_path: Path, ahead: float) -> None:
    account, secret = f"extension-{place.name}", f"token-{place.name}"
    place.garden.create(SERVICE_ACCOUNTS, account, namespace=namespace_of(place.name))
    meta = {
        "name": secret,
        "labels": {keys.PURPOSE: keys.PURPOSE_TOKEN_REQUESTOR, keys.CLASS: keys.CLASS_GARDEN},
        "annotations": {keys.SERVICE_ACCOUNT_NAME: account},
    }
    with roads(place, tmp_path, clock_ahead=ahead) as road:
        place.cluster.api.create(SECRETS.path(namespace=GARDEN), {"metadata": meta})
        path = SECRETS.path(namespace=GARDEN, name=secret)
        renew = eventually(lambda: annotations(place.find(path) or {}).get(keys.TOKEN_RENEW_TIMESTAMP), "a token")
        now = utc_now()
        assert timedelta(0) < parse_time(renew) - now < 13 * HOUR
        assert abs(renewed(place.garden, place.name) - now) < HOUR / 2
        seed = place.seed
        conditions = [condition(seed, name) or {} for name in ("GardenletReady", "SeedSystemComponentsHealthy")]
        times = [each[name] for each in conditions for name in ("lastTransitionTime", "lastUpdateTime")]
        times.append(str(at(seed, "status", "lastOperation", "lastUpdateTime")))
        for each in times:
            assert abs(parse_time(each) - now) < HOUR / 2
        assert probes(road.gardenlet) == (200, 200)
        assert "differs from that of the API server" in road.gardenlet.log


# --- answers of strangers


def identities(place: SeedPlace) -> dict[str, str]:
    """What must be neither deleted nor recreated, by where it is."""
    garden, seed = place.garden.cluster.api, place.cluster.api
    found = {"Seed": uid(place.seed), "Lease": uid(place.garden.get(LEASES, place.name, namespace=LEASE_NAMESPACE))}
    for where, api, namespace in (("garden", garden, namespace_of(place.name)), ("seed", seed, GARDEN)):
        for resource in (SECRETS, CONFIG_MAPS, NETWORK_POLICIES):
            for each in api.get(resource.path(namespace=namespace))["items"]:
                found[f"{where} {resource.plural} {metadata(each)['name']}"] = uid(each)
    return found


@pytest.mark.slow
async def test_what_strangers_answer_is_no_absence(place: SeedPlace, tmp_path: Path) -> None:
    garden, seed = place.garden.cluster, place.cluster
    async with proxy_to(garden) as to_garden, proxy_to(seed) as to_seed:
        to_garden.write_kubeconfig(tmp_path / "garden", token=garden.token)
        to_seed.write_kubeconfig(tmp_path / "seed", token=seed.token)
        process = partial(
            place.process,
            kubeconfig=tmp_path / "seed",
            gardenClientConnection={"kubeconfig": str(tmp_path / "garden")},
        )
        with place.resource_manager(), process() as gardenlet:
            await asyncio.to_thread(place.finished)
            await asyncio.to_thread(beats, place.garden, place.name, gardenlet)
            before, generation = identities(place), metadata(place.seed)["generation"]
            for proxies in ([to_garden], [to_seed], [to_garden, to_seed]):
                await answered_by_strangers(proxies)
                # While a pass goes on, too.
                requested = place.operate("reconcile")
                await asyncio.sleep(1)
                for each in proxies:
                    each.rules.clear()
                    each.drop_all_connections()
                await asyncio.to_thread(partial(place.finished, generation=requested))
                await asyncio.to_thread(beats, place.garden, place.name, gardenlet)
                assert identities(place) == before
            assert gardenlet.process.poll() is None
            assert metadata(place.seed)["generation"] == generation + 3
            await asyncio.to_thread(gardenlet.stop)
        await starts_behind_strangers(place, process, [to_garden, to_seed])
        assert identities(place) == before


async def answered_by_strangers(proxies: list[FaultProxy]) -> None:
    """By all in turn, watches too, which start again there."""
    for each in proxies:
        left = range(len(STRANGERS), 0, -1)
        each.rules.add(*(Rule(fault=one, probability=1 / count) for one, count in zip(STRANGERS, left, strict=True)))
        each.drop_all_connections()
    for each in proxies:
        await soon(lambda: each.rules.hits >= MANY, "so many answers")  # noqa: B023 - at once


async def starts_behind_strangers(place: SeedPlace, process: Any, proxies: list[FaultProxy]) -> None:
    for each in proxies:
        # The process waits for seconds after each.
        each.rules.add(*(Rule(fault=one, times=1) for one in STRANGERS if one.code in {200, 404}))
    with process() as gardenlet:
        await asyncio.to_thread(beats, place.garden, place.name, gardenlet)
        await asyncio.to_thread(gardenlet.stop)
    assert all(each.rules.hits for each in proxies)
