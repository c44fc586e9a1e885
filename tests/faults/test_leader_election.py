"""Leader election on a real API server: leases, events, hand-over, loss."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from devcluster.testing.faults import Reset, Rule, Silence, unavailable
from devcluster.testing.proxy import FaultProxy
from kit.eventually import soon
from kube.errors import KubeError
from kube.objects import Key, Object
from kube.resources import EVENTS, LEASES
from kube.runtime.client import Client, Selection
from kube.runtime.election import ElectionSettings, LeaderElector, LeadershipLost
from kube.runtime.events import EventRecorder


@pytest.fixture
async def recorder(client: Client) -> AsyncIterator[EventRecorder]:
    recorder = EventRecorder(client, component="test")
    running = asyncio.create_task(recorder.run())
    yield recorder
    await recorder.drain(5)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running


@pytest.fixture
def settings(namespace: str) -> ElectionSettings:
    """Looked at often, and not lost while the machine stands still for a moment."""
    return ElectionSettings(namespace=namespace, name="lease", lease_duration=60, renew_deadline=40, retry_period=0.1)


class Candidate:
    """A process that wants to lead."""

    def __init__(
        self, client: Client, settings: ElectionSettings, identity: str, *, recorder: EventRecorder | None = None
    ) -> None:
        self.elector = LeaderElector(client, settings, identity=identity, recorder=recorder)
        self.is_leading = asyncio.Event()
        self.task = asyncio.create_task(self.elector.run(self._lead))

    async def _lead(self) -> None:
        self.is_leading.set()
        await asyncio.Event().wait()

    async def stop(self) -> None:
        self.task.cancel()
        with contextlib.suppress(asyncio.CancelledError, KubeError):
            await self.task


async def spec_of(client: Client, settings: ElectionSettings) -> Object:
    lease = await client.get(LEASES, Key(settings.namespace, settings.name))
    spec: Object = lease["spec"]
    return spec


async def test_the_lease_is_handed_over_at_once_when_its_holder_stops(
    client: Client, settings: ElectionSettings, recorder: EventRecorder
) -> None:
    first = Candidate(client, settings, "pod-a_1", recorder=recorder)
    await asyncio.wait_for(first.is_leading.wait(), 30)
    second = Candidate(client, settings, "pod-b_2", recorder=recorder)
    held = await spec_of(client, settings)
    assert (held["holderIdentity"], held["leaseDurationSeconds"], held["leaseTransitions"]) == ("pod-a_1", 60, 0)
    await asyncio.sleep(0.5)
    async with asyncio.timeout(30):
        while (renewed := await spec_of(client, settings))["renewTime"] == held["renewTime"]:
            await asyncio.sleep(0.05)
    assert not second.is_leading.is_set()
    assert renewed == {**held, "renewTime": renewed["renewTime"]}
    assert renewed["renewTime"] > held["renewTime"]

    await first.stop()
    assert not first.elector.tenure.is_leading()
    await asyncio.wait_for(second.is_leading.wait(), 30)
    taken = await spec_of(client, settings)
    assert (taken["holderIdentity"], taken["leaseTransitions"]) == ("pod-b_2", 1)
    await second.stop()

    released = await spec_of(client, settings)
    assert released["holderIdentity"] == ""
    assert (released["leaseDurationSeconds"], released["leaseTransitions"]) == (1, 1)
    assert released["acquireTime"] == released["renewTime"]
    await recorder.drain(60)
    events = await client.list(EVENTS, Selection(namespace=settings.namespace))
    reported = {(e["type"], e["reason"], e["involvedObject"]["kind"], e["message"]) for e in events}
    assert reported == {
        ("Normal", "LeaderElection", "Lease", f"{identity} {what}")
        for identity in ("pod-a_1", "pod-b_2")
        for what in ("became leader", "stopped leading")
    }


async def test_a_renewal_is_one_request(
    client: Client, settings: ElectionSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    candidate = Candidate(client, settings, "pod-a_1")
    await asyncio.wait_for(candidate.is_leading.wait(), 30)
    methods: list[str] = []
    request: Callable[..., Awaitable[bytes]] = client.request

    async def spy(method: str, path: str, **options: object) -> bytes:
        methods.append(method)
        return await request(method, path, **options)

    monkeypatch.setattr(client, "request", spy)
    await soon(lambda: len(methods) >= 3)
    assert set(methods) == {"PUT"}
    await candidate.stop()


async def test_a_lease_that_another_client_took_ends_leadership_before_the_deadline(
    client: Client, settings: ElectionSettings
) -> None:
    candidate = Candidate(client, settings, "pod-a_1")
    await asyncio.wait_for(candidate.is_leading.wait(), 30)
    while True:
        lease = await client.get(LEASES, Key(settings.namespace, settings.name))
        lease["spec"]["holderIdentity"] = "thief"
        with contextlib.suppress(KubeError):
            await client.replace(LEASES, lease)
            break
    with pytest.raises(LeadershipLost, match="leader election lost"):
        await asyncio.wait_for(candidate.task, 30)
    assert not candidate.elector.tenure.is_leading()
    assert (await spec_of(client, settings))["holderIdentity"] == "thief"


async def test_a_lease_that_was_deleted_is_made_again(client: Client, settings: ElectionSettings) -> None:
    candidate = Candidate(client, settings, "pod-a_1")
    await asyncio.wait_for(candidate.is_leading.wait(), 30)
    await client.delete(LEASES, Key(settings.namespace, settings.name))
    async with asyncio.timeout(30):
        while not await client.list(LEASES, Selection(namespace=settings.namespace)):
            await asyncio.sleep(0.05)
    assert (await spec_of(client, settings))["holderIdentity"] == "pod-a_1"
    assert candidate.elector.tenure.is_leading()
    await candidate.stop()


async def test_a_vanished_leader_is_followed_when_the_lease_has_expired(
    client: Client, settings: ElectionSettings
) -> None:
    await client.create(
        LEASES,
        {
            "metadata": {"name": settings.name, "namespace": settings.namespace},
            "spec": {"holderIdentity": "gone", "leaseDurationSeconds": 1, "leaseTransitions": 7},
        },
    )
    started = asyncio.get_running_loop().time()
    candidate = Candidate(client, settings, "pod-a_1")
    await asyncio.wait_for(candidate.is_leading.wait(), 30)
    assert asyncio.get_running_loop().time() - started >= 1
    assert (await spec_of(client, settings))["leaseTransitions"] == 8
    await candidate.stop()


async def test_an_exception_of_leading_is_passed_on_and_the_lease_released(
    client: Client, settings: ElectionSettings
) -> None:
    async def fail() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await LeaderElector(client, settings, identity="pod-a_1").run(fail)
    assert (await spec_of(client, settings))["holderIdentity"] == ""


async def test_a_rare_observer_learns_at_once_that_the_lease_was_given_up(client: Client, namespace: str) -> None:
    seldom = ElectionSettings(
        namespace=namespace, name="lease", lease_duration=300, renew_deadline=200, retry_period=100
    )
    first = Candidate(client, seldom, "pod-a_1")
    await asyncio.wait_for(first.is_leading.wait(), 30)
    second = Candidate(client, seldom, "pod-b_2")
    await soon(lambda: second.elector._lease is not None)
    await first.stop()
    await asyncio.wait_for(second.is_leading.wait(), 60)
    await second.stop()


async def test_where_the_lease_can_not_be_watched_looking_is_enough(
    client: Client, proxied_client: Client, proxy: FaultProxy, settings: ElectionSettings
) -> None:
    proxy.rules.add(Rule(fault=unavailable(), path="/leases", watch=True))
    first = Candidate(client, settings, "pod-a_1")
    await asyncio.wait_for(first.is_leading.wait(), 30)
    second = Candidate(proxied_client, settings, "pod-b_2")
    await soon(lambda: proxy.rules.hits > 0)
    await asyncio.sleep(0.5)
    assert not second.is_leading.is_set()
    await first.stop()
    await asyncio.wait_for(second.is_leading.wait(), 30)
    await second.stop()


async def test_of_many_candidates_one_leads(client: Client, settings: ElectionSettings) -> None:
    candidates = [Candidate(client, settings, f"pod-{number}_x") for number in range(8)]
    await soon(lambda: any(candidate.is_leading.is_set() for candidate in candidates))
    for _ in range(100):
        assert sum(candidate.elector.tenure.is_leading() for candidate in candidates) <= 1
        await asyncio.sleep(0.01)
    assert sum(candidate.is_leading.is_set() for candidate in candidates) == 1
    for candidate in candidates:
        await candidate.stop()


async def test_a_leader_that_reaches_no_api_server_stops_at_the_deadline(
    client: Client, proxied_client: Client, proxy: FaultProxy, namespace: str
) -> None:
    settings = ElectionSettings(namespace=namespace, name="lease", lease_duration=8, renew_deadline=3, retry_period=0.1)
    first = Candidate(proxied_client, settings, "pod-a_1")
    await asyncio.wait_for(first.is_leading.wait(), 30)
    second = Candidate(client, settings, "pod-b_2")
    proxy.rules.add(Rule(fault=Silence(), path="/leases"))
    loop = asyncio.get_running_loop()
    cut_off = loop.time()
    with pytest.raises(LeadershipLost):
        await asyncio.wait_for(first.task, 30)
    assert loop.time() - cut_off < settings.lease_duration  # on an idle machine, at the deadline
    assert not second.is_leading.is_set()
    await asyncio.wait_for(second.is_leading.wait(), 60)
    assert (await spec_of(client, settings))["leaseTransitions"] == 1
    await second.stop()


async def test_renewals_whose_answers_are_lost_do_not_end_leadership(
    client: Client, proxied_client: Client, proxy: FaultProxy, settings: ElectionSettings
) -> None:
    candidate = Candidate(proxied_client, settings, "pod-a_1")
    await asyncio.wait_for(candidate.is_leading.wait(), 30)
    proxy.rules.add(Rule(fault=Reset(carried_out=True), methods=("PUT",), probability=0.5))
    await soon(lambda: proxy.injected["reset-carried-out"] >= 5)
    assert candidate.elector.tenure.is_leading()
    proxy.rules.clear()
    last = candidate.elector.tenure.deadline
    await soon(lambda: candidate.elector.tenure.deadline > last)
    await candidate.stop()
    spec = await spec_of(client, settings)
    assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("", 0)
