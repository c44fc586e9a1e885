"""Secrets of control planes: as the original writes them, made once, taken over, rotated and cleaned up."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import pytest
import yaml

from agent.gardenlet.common.secrets_manager import SecretsError, SecretsManager, restore
from components import registry
from components.secrets.configs import Config, Data, Given, Made
from components.secrets.persisted import entries, secrets
from components.secrets.rotation import Old
from components.secrets.stored import secret, stored
from components.secrets.tables import (
    CA,
    CA_CLIENT,
    CA_SEED,
    ENCRYPTION_KEY,
    SERVICE_ACCOUNT_KEY,
    SSH_KEY,
    ControlPlane,
    authorities_of_a_shoot,
    client,
    generic_token_kubeconfig,
    resource_manager_server,
    server,
    static_tokens,
)
from devcluster.audit import Audit
from devcluster.cluster import Cluster
from devcluster.testing.faults import Rule, internal_error
from devcluster.testing.proxy import FaultProxy
from kit.recorded_secrets import summary
from kit.world import World, connected
from kube.errors import KubeError
from kube.objects import Object, labels, metadata
from kube.runtime.client import Client
from kube.x509 import Certificate, Profile, load_certificates, make_from_profile, make_rsa_key, profile_of, rsa_key_pem

RECORDED = Path(__file__).parents[1] / "conformance" / "gardenlet" / "secrets.yaml"
NOT_MADE = {
    "plutono-admin": "a login for a dashboard that a seed does not have",
    "plutono-tls": "the same",
    "prometheus-aggregate-tls": "a seed has no monitoring of its own",
    "vpa-admission-controller-server": "a seed has no vertical Pod autoscaler of its own",
}
PROGRAM = "secrets-manager"
PATIENCE = 60.0
NOW = datetime(2026, 1, 1, tzinfo=UTC)
SERVER = server("server", "server", CA, ["server.example.com", "10.0.0.1"])
CLIENT = client("client", "system:client", CA, groups=["system:masters"])


KEY = make_rsa_key(2048)


@cache
def authority(name: str, *, since: datetime = NOW, lifetime: timedelta = timedelta(days=3653)) -> dict[str, bytes]:
    profile = Profile(common_name=name, is_authority=True)
    pair = make_from_profile(profile, KEY, ca=None, now=since, lifetime=lifetime)
    return {"ca.crt": pair.certificate_pem, "ca.key": rsa_key_pem(KEY)}


class Open(Protocol):
    def __call__(self, **options: Any) -> Awaitable[SecretsManager]: ...


@pytest.fixture
async def open_manager(cluster: Cluster, namespace: str) -> Any:
    """A function for the next pass; its options are those of `open`, and the time."""
    async with connected(cluster, f"{PROGRAM}/1") as own:

        async def open_one(*, now: datetime = NOW, **options: Any) -> SecretsManager:
            return await SecretsManager.open(own, namespace, clock=lambda: now, **options)

        yield open_one


async def generated(manager: SecretsManager, *configs: Config, old: Old = Old.IN_USE) -> list[str]:
    """Names of the current Secrets."""
    return [(await manager.generate(config, old=old)).current.name for config in configs]


async def secrets_in(world: World) -> dict[str, Object]:
    return {metadata(each)["name"]: each for each in await world.list("Secret")}


# --- what is recorded


async def everything_of_a_seed(manager: SecretsManager) -> None:
    await generated(manager, CA_SEED, resource_manager_server("garden", CA_SEED))


async def everything_of_a_shoot(manager: SecretsManager) -> None:
    await asyncio.gather(*(manager.generate(each) for each in authorities_of_a_shoot(has_workers=True)))
    bundle = manager.get("ca").bundle
    assert bundle
    plane = ControlPlane(
        namespace="shoot--local--w",
        domains=(
            "api.w.local.internal.example.com",
            "w.local.external.example.com",
            "api.w.local.external.example.com",
        ),
        service_addresses=("10.4.0.1", "10.4.0.1"),
        has_workers=True,
    )
    others: Iterable[Config] = (
        *(SSH_KEY, SERVICE_ACCOUNT_KEY, ENCRYPTION_KEY, static_tokens(has_cluster_admin=False)),
        *registry.secrets(plane),
        generic_token_kubeconfig("shoot--local--w", bundle.data["bundle.crt"]),
    )
    await asyncio.gather(*(manager.generate(each) for each in others))


@pytest.mark.parametrize(
    ("of", "make"), [("seed", everything_of_a_seed), ("workers", everything_of_a_shoot)], ids=["seed", "shoot"]
)
async def test_secrets_are_as_recorded(
    world: World, open_manager: Open, of: str, make: Callable[[SecretsManager], Awaitable[None]]
) -> None:
    await make(await open_manager())
    recorded = yaml.safe_load(RECORDED.read_text())[of]
    expected = {each["labels"]["name"]: each for each in recorded if each["labels"]["name"] not in NOT_MADE}
    found = {labels(each)["name"]: summary(each) for each in (await secrets_in(world)).values()}
    assert found.keys() == expected.keys()
    for name, of_one in expected.items():
        assert found[name] == of_one, name
    assert all(each["immutable"] for each in (await secrets_in(world)).values())


# --- passes


async def test_a_second_pass_reads_once_and_writes_nothing(
    audit: Audit, world: World, namespace: str, open_manager: Open
) -> None:
    first = await generated(await open_manager(), CA, SERVER, CLIENT, SERVICE_ACCOUNT_KEY)
    mark = audit.mark()
    manager = await open_manager(now=NOW + timedelta(days=365))
    assert await generated(manager, CA, SERVER, CLIENT, SERVICE_ACCOUNT_KEY) == first
    await manager.clean_up()
    assert audit.count(since=mark, user_agent=f"{PROGRAM}/", namespace=namespace) == {("list", "secrets"): 1}
    assert len(await secrets_in(world)) == len(first) + len(["bundle of CA", "bundle of keys"])


async def test_making_keys_leaves_the_event_loop_free(open_manager: Open) -> None:
    manager = await open_manager()
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.create_task(count())
    await manager.generate(CA)
    counting.cancel()
    assert turns > 100


async def test_what_was_not_requested_is_cleaned_up_unless_it_is_kept(world: World, open_manager: Open) -> None:
    await generated(await open_manager(), CA, SERVER, CA_CLIENT, ENCRYPTION_KEY)
    foreign = {"name": "foreign", "managed-by": "secrets-manager", "manager-identity": "other"}
    await world.create(secret(world.namespace, "foreign", foreign, {"a": b"b"}))
    manager = await open_manager()
    await generated(manager, CA)
    manager.keep(ENCRYPTION_KEY.name, CA_CLIENT.name)
    await manager.clean_up()
    left = {labels(each)["name"] for each in (await secrets_in(world)).values()}
    assert left == {"ca", "ca-bundle", "ca-client", "ca-client-bundle", ENCRYPTION_KEY.name, "foreign"}


async def test_a_changed_config_is_another_secret(open_manager: Open) -> None:
    manager = await open_manager()
    (_, before) = await generated(manager, CA, SERVER)
    (after,) = await generated(manager, server("server", "server", CA, ["other.example.com"]))
    assert (before != after, before[:7], after[:7]) == (True, "server-", "server-")


async def test_a_secret_that_was_made_meanwhile_is_used(world: World, open_manager: Open) -> None:
    late, early = await open_manager(), await open_manager()
    await generated(early, CA)
    made = (await secrets_in(world))["ca"]
    assert stored(made).data == (await late.generate(CA)).current.data


async def test_data_that_a_user_gives_is_used_for_a_new_secret(world: World, open_manager: Open) -> None:
    given = secret(world.namespace, "given", {"secrets-manager-use-data-for-name": CA_CLIENT.name}, authority("given"))
    await world.create({**given, "immutable": False})
    assert (await (await open_manager()).generate(CA_CLIENT)).current.data == authority("given")


# --- taking over


async def test_secrets_of_the_original_are_taken_over_as_they_are(
    audit: Audit, world: World, namespace: str, open_manager: Open
) -> None:
    """Under its names and checksums, which are computed otherwise."""
    configs = (
        CA,
        CA_CLIENT,
        SERVER,
        CLIENT,
        SERVICE_ACCOUNT_KEY,
        ENCRYPTION_KEY,
        static_tokens(has_cluster_admin=True),
    )
    await generated(await open_manager(), *configs)
    for name, each in (await secrets_in(world)).items():
        await world.delete("Secret", name)
        original = {**labels(each), "checksum-of-config": "12345678901234567890"}
        if "checksum-of-signing-ca" in original:
            original["checksum-of-signing-ca"] = "0" * 63
        their_name = name if name == "ca" else f"{original['name']}-0123abcd"
        await world.create(secret(namespace, their_name, original, stored(each).data))
    before = await secrets_in(world)
    mark = audit.mark()
    manager = await open_manager()
    names = await generated(manager, *configs)
    await manager.clean_up()
    assert names == ["ca", *(f"{config.name}-0123abcd" for config in configs[1:])]
    assert await secrets_in(world) == before
    assert audit.count(since=mark, user_agent=f"{PROGRAM}/", namespace=namespace) == {("list", "secrets"): 1}


async def test_of_several_that_fit_the_newest_is_taken_over(world: World, open_manager: Open) -> None:
    ours = {"name": CA_CLIENT.name, "managed-by": "secrets-manager", "manager-identity": "gardenlet"}
    rotated = {"last-rotation-initiation-time": ""}
    for name, issued in (("ca-client-1", "100"), ("ca-client-2", "300"), ("ca-client-3", "200")):
        more = {**ours, **rotated, "issued-at-time": issued}
        await world.create(secret(world.namespace, name, more, authority(name)))
    assert (await (await open_manager()).generate(CA_CLIENT)).current.name == "ca-client-2"


async def test_what_does_not_fit_is_not_taken_over(world: World, open_manager: Open) -> None:
    await generated(await open_manager(), CA, SERVER)
    changed = server("server", "server", CA, ["server.example.com", "10.0.0.2"])
    (name,) = {name for name in await secrets_in(world) if name.startswith("server-")}
    manager = await open_manager()
    (_, other) = await generated(manager, CA, changed)
    assert other != name


async def test_secrets_that_a_shoot_has_brought_along_are_used(world: World, open_manager: Open) -> None:
    configs = (CA, CA_CLIENT, ENCRYPTION_KEY, SERVER)
    first = await generated(await open_manager(), *configs)
    before = await secrets_in(world)
    moving = entries(before.values())
    assert [each["name"] for each in moving] == sorted(first[:3])
    for name in before:
        await world.delete("Secret", name)
    brought = secrets({"gardener": [*moving, {"type": "machine-state", "name": "m"}]}, world.namespace)
    for _ in range(2):
        await restore(world.client, world.namespace, brought)
    assert await generated(await open_manager(), *configs) == first
    after = await secrets_in(world)
    assert [stored(after[name]).data for name in first[:3]] == [stored(before[name]).data for name in first[:3]]


# --- rotation


def signer_of(name: str, manager: SecretsManager) -> str:
    (certificate, *_) = load_certificates(manager.get(name).current.data["tls.crt"])
    return "".join(str(each.value) for each in certificate.issuer)


async def test_trust_shrinks_only_when_servers_have_been_replaced(world: World, open_manager: Open) -> None:
    await generated(await open_manager(), CA, SERVER, CLIENT)
    requested = {"ca": NOW + timedelta(days=1)}

    async def step(old: Old) -> tuple[int, str, str]:
        """Certificates in the bundle, and which authority has signed for the server, and for the client."""
        manager = await open_manager(requested=requested)
        await generated(manager, CA, SERVER, CLIENT, old=old)
        bundle = manager.get("ca").bundle
        assert bundle
        trusted = load_certificates(bundle.data["bundle.crt"])
        assert profile_of(trusted[0]).common_name == manager.get("ca").current.name != "ca"
        if old is Old.IGNORED:
            await manager.clean_up()
        for_server, for_client = (
            "old" if signer_of(each.name, manager) == "ca" else "current" for each in (SERVER, CLIENT)
        )
        return len(trusted), for_server, for_client

    assert await step(Old.IN_USE) == (2, "old", "current")
    assert await step(Old.VERIFIES) == (2, "current", "current")
    assert await step(Old.IGNORED) == (1, "current", "current")
    assert "ca" not in await secrets_in(world)
    assert await step(Old.IN_USE) == (1, "current", "current")  # nothing old is left


async def test_an_old_authority_that_has_run_out_is_no_trust(world: World, open_manager: Open) -> None:
    ours = {"managed-by": "secrets-manager", "manager-identity": "gardenlet", "last-rotation-initiation-time": ""}
    over = authority("over", since=NOW - timedelta(days=20), lifetime=timedelta(days=10))
    await world.create(secret(world.namespace, "ca", {**ours, "name": "ca", "issued-at-time": "1"}, over))
    manager = await open_manager(requested={"ca": NOW})
    await generated(manager, CA, SERVER)
    assert signer_of("server", manager) == manager.get("ca").current.name != "ca"
    bundle = manager.get("ca").bundle
    assert bundle
    assert len(load_certificates(bundle.data["bundle.crt"])) == 1
    await manager.clean_up()
    assert "ca" not in await secrets_in(world)


async def test_the_authority_of_a_seed_renews_itself(open_manager: Open) -> None:
    first = await (await open_manager(renews_authorities=True)).generate(CA_SEED)
    for days, is_new in ((19, False), (21, True)):
        manager = await open_manager(now=NOW + timedelta(days=days), renews_authorities=True)
        later = await manager.generate(CA_SEED)
        assert (later.current.name != first.current.name, later.old is not None) == (is_new, is_new)


async def test_tokens_are_rotated_in_place(world: World, open_manager: Open) -> None:
    tokens = static_tokens(has_cluster_admin=False)
    (before,) = await generated(await open_manager(), tokens)
    manager = await open_manager(requested={tokens.name: NOW})
    found = await manager.generate(tokens)
    await manager.clean_up()
    assert (found.old, found.current.name.startswith(f"{before}-")) == (None, True)
    assert set(await secrets_in(world)) == {found.current.name}


async def test_old_keys_verify_until_they_are_ignored(open_manager: Open) -> None:
    before = await (await open_manager()).generate(SERVICE_ACCOUNT_KEY)
    requested = {SERVICE_ACCOUNT_KEY.name: NOW}
    prepared = await (await open_manager(requested=requested)).generate(SERVICE_ACCOUNT_KEY)
    completed = await (await open_manager(requested=requested)).generate(SERVICE_ACCOUNT_KEY, old=Old.IGNORED)
    assert prepared.bundle
    assert completed.bundle
    new, old = prepared.current.data["id_rsa"], before.current.data["id_rsa"]
    assert prepared.bundle.data["bundle.key"] == new + old
    assert completed.bundle.data["bundle.key"] == new


async def test_rotations_one_after_the_other_leave_the_current_and_the_old(world: World, open_manager: Open) -> None:
    configs = (ENCRYPTION_KEY, SERVICE_ACCOUNT_KEY, SSH_KEY)
    await generated(await open_manager(), *configs)
    numbers = []
    for day in range(1, 6):
        moment = NOW + timedelta(days=day)
        manager = await open_manager(now=moment, requested=dict.fromkeys((each.name for each in configs), moment))
        await generated(manager, *configs)
        await manager.clean_up()
        there = await secrets_in(world)
        numbers.append((len(there), len(entries(there.values()))))
    assert len(set(numbers)) == 1, numbers


# --- what goes wrong


@pytest.mark.parametrize("carried_out", [False, True])
@pytest.mark.parametrize("written", [0, 1, 2])
async def test_a_pass_that_ends_at_any_write_is_taken_up_by_the_next(
    world: World, proxy: FaultProxy, proxied_client: Client, namespace: str, written: int, carried_out: bool
) -> None:
    """Whether or not the write had an effect: nothing is made twice, and nothing is left over."""
    configs = (CA, CLIENT)

    async def one_pass() -> list[str]:
        manager = await SecretsManager.open(proxied_client, namespace, clock=lambda: NOW)
        names = await generated(manager, *configs)
        await manager.clean_up()
        return names

    fault = internal_error(carried_out=carried_out)
    proxy.rules.add(Rule(fault=fault, methods=("POST",), path="/secrets$", after=written, times=1))
    with pytest.raises(KubeError):
        await one_pass()
    before = await secrets_in(world)
    names = await one_pass()
    after = await secrets_in(world)
    assert {name: stored(each).data for name, each in before.items()}.items() <= {
        name: stored(each).data for name, each in after.items()
    }.items()
    assert sorted(labels(each)["name"] for each in after.values()) == ["ca", "ca-bundle", "client"]
    assert names == await one_pass()


async def test_an_authority_has_to_be_generated_first(open_manager: Open) -> None:
    with pytest.raises(SecretsError, match="ca of namespace .* is used before it was generated"):
        await (await open_manager()).generate(SERVER)


async def test_an_authority_without_a_key_is_explained(world: World, open_manager: Open) -> None:
    ours = {"name": "ca", "managed-by": "secrets-manager", "manager-identity": "gardenlet"}
    await world.create(secret(world.namespace, "ca", ours, {**authority("ca"), "ca.key": b"broken"}))
    manager = await open_manager()
    await manager.generate(CA)
    with pytest.raises(SecretsError, match=r"Secret .*/ca has no usable CA to sign server; restore the Secret"):
        await manager.generate(SERVER)


async def test_a_foreign_secret_of_that_name_is_in_the_way(world: World, open_manager: Open) -> None:
    await world.create(secret(world.namespace, "ca", {}, {"a": b"b"}))
    with pytest.raises(SecretsError, match="ca conflicts with ca: "):
        await (await open_manager()).generate(CA)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slow(Config):
    """Takes until the event loop has its turn: made on the loop, it would never end."""

    loop: asyncio.AbstractEventLoop

    def described(self) -> dict[str, Any]:
        return {"kind": "slow"}

    def make(self, given: Given, /) -> Made:
        del given
        turn = threading.Event()
        self.loop.call_soon_threadsafe(turn.set)
        assert turn.wait(PATIENCE)
        return Made({"made": b"in time"})

    def fits(self, data: Data, ca: Certificate | None, /) -> bool:
        del data, ca
        return False


async def test_contents_are_made_beside_the_event_loop(open_manager: Open) -> None:
    """Ten at once, more than there are cores: while one is made, the loop has its turn."""
    manager = await open_manager()
    loop = asyncio.get_running_loop()
    configs = [_Slow(name=f"slow-{number}", loop=loop) for number in range(10)]
    await asyncio.gather(*map(manager.generate, configs))
    assert {manager.get(each.name).current.data["made"] for each in configs} == {b"in time"}
