"""The client against a real API server: what it sends, how it reads errors, and what it does when things go wrong."""

import asyncio
import gc
import time
import uuid
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import REGISTRY

from devcluster.cluster import Cluster
from devcluster.testing.faults import (
    STRANGERS,
    Answer,
    Delay,
    Reset,
    Rule,
    Silence,
    Trickle,
    expired,
    internal_error,
    throttled,
    unauthorized,
    unavailable,
)
from devcluster.testing.proxy import FaultProxy, LogEntry
from kit.objects import obj
from kube.errors import (
    AlreadyExists,
    AnswerTooLong,
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    KindNotServed,
    KubeError,
    NoStatus,
    NotFound,
    ServerFailure,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from kube.objects import Key, Object, metadata, uid
from kube.resources import CONFIG_MAPS, NAMESPACES, Resource
from kube.runtime import answers
from kube.runtime.cache import Store, View, without_managed_fields
from kube.runtime.client import Client, Form, Selection
from kube.runtime.connection import load_kubeconfig
from kube.runtime.discovery import Discovery
from kube.runtime.transport import Transport
from kube.runtime.watch import Present, Watcher
from kubectl.transport import PlainTransport
from localprocesses.pki import Authority, kubeconfig

PATH = "/configmaps"
HTML = Answer(name="html", code=200, reason="", message="<html>Log in first</html>", plain=True)


def config_map(namespace: str, name: str, **data: str) -> Object:
    return obj(CONFIG_MAPS, f"{namespace}/{name}", data=data)


Opened = Transport | PlainTransport


@pytest.fixture(params=[Transport, PlainTransport], ids=["program", "command"])
def made_by(request: pytest.FixtureRequest) -> type[Opened]:
    kind: type[Opened] = request.param
    return kind


@pytest.fixture
async def transport(
    made_by: type[Opened], cluster: Cluster, proxy: FaultProxy, tmp_path: Path
) -> AsyncIterator[Opened]:
    proxy.write_kubeconfig(tmp_path / "kubeconfig", token=cluster.token)
    async with made_by(load_kubeconfig(tmp_path / "kubeconfig")) as opened:
        yield opened


@pytest.fixture
def client(transport: Opened) -> Client:
    return Client(transport, user_agent="client-test/1.0")


def answered(proxy: FaultProxy) -> list[LogEntry]:
    """Requests but those by which the client checks a slow API server, as happens on a busy machine."""
    return [entry for entry in proxy.log if entry.request.path != "/readyz"]


def methods(proxy: FaultProxy) -> list[str]:
    return [entry.request.method for entry in answered(proxy)]


# --- what the API server requests


@pytest.mark.parametrize("fault", [throttled(retry_after=1), unavailable(retry_after=1)], ids=lambda fault: fault.name)
async def test_who_is_requested_to_come_back_later_does(
    fault: Answer, client: Client, proxy: FaultProxy, namespace: str
) -> None:
    proxy.rules.add(Rule(fault=fault, path=PATH, times=1))
    started = time.monotonic()
    created = await client.create(CONFIG_MAPS, config_map(namespace, "late"))
    assert time.monotonic() - started >= 1
    assert created["metadata"]["name"] == "late"
    assert methods(proxy) == ["POST", "POST"]


@pytest.mark.parametrize(
    ("fault", "error", "message"),
    [
        (throttled(retry_after=0), TooManyRequests, "Too many requests, please try again later."),
        (unavailable(retry_after=0), ServerFailure, "the server is currently unable to handle the request"),
    ],
)
async def test_patience_ends(
    *, fault: Answer, error: type[KubeError], message: str, client: Client, proxy: FaultProxy, namespace: str
) -> None:
    proxy.rules.add(Rule(fault=fault, path=PATH))
    with pytest.raises(error) as refused:
        await client.get(CONFIG_MAPS, Key(namespace, "x"))
    assert str(refused.value) == message
    assert methods(proxy) == ["GET"] * 5


async def test_waiting_takes_no_longer_than_the_request_may(client: Client, proxy: FaultProxy, namespace: str) -> None:
    proxy.rules.add(Rule(fault=throttled(retry_after=6), path=PATH))
    with pytest.raises(TooManyRequests):
        await client.get(CONFIG_MAPS, Key(namespace, "x"), timeout=11)
    assert methods(proxy) == ["GET"] * 2


@pytest.mark.parametrize("fault", [internal_error(), unavailable()], ids=lambda fault: fault.name)
async def test_a_failure_without_a_time_to_come_back_is_raised_at_once(
    fault: Answer, client: Client, proxy: FaultProxy, namespace: str
) -> None:
    proxy.rules.add(Rule(fault=fault, path=PATH))
    with pytest.raises(ServerFailure) as failed:
        await client.create(CONFIG_MAPS, config_map(namespace, "x"))
    assert str(failed.value) == fault.message
    assert failed.value.status == fault.code
    assert methods(proxy) == ["POST"]


# --- unknown whether it was carried out


async def test_a_lost_answer_to_a_creation_is_an_error_and_nothing_is_created_twice(
    client: Client, admin: Client, proxy: FaultProxy, namespace: str
) -> None:
    await client.list(CONFIG_MAPS, Selection(namespace=namespace))  # the connection is a used one
    proxy.rules.add(Rule(fault=Reset(carried_out=True), methods=("POST",)))
    many = obj(CONFIG_MAPS, generateName="once-", namespace=namespace)
    with pytest.raises(Unreachable, match=f'^POST "{proxy.url}/api/v1/namespaces/{namespace}/configmaps": '):
        await client.create(CONFIG_MAPS, many)
    assert methods(proxy) == ["GET", "POST"]
    names = [metadata(found)["name"] for found in await admin.list(CONFIG_MAPS, Selection(namespace=namespace))]
    assert len([name for name in names if name.startswith("once-")]) == 1


async def test_an_api_server_that_is_away_is_unreachable_until_it_is_back(client: Client, proxy: FaultProxy) -> None:
    await client.get(NAMESPACES, "default")
    await proxy.pause()
    with pytest.raises(Unreachable, match=r'GET "https://127\.0\.0\.1:\d+/api/v1/namespaces/default": '):
        await client.get(NAMESPACES, "default")
    await proxy.resume()
    assert metadata(await client.get(NAMESPACES, "default"))["name"] == "default"


async def test_silence_ends_with_the_time_limit(client: Client, proxy: FaultProxy) -> None:
    proxy.rules.add(Rule(fault=Silence()))
    started = time.monotonic()
    with pytest.raises(Unreachable):
        await client.get(NAMESPACES, "default", timeout=0.3)
    assert 0.3 <= time.monotonic() - started < 30  # without the limit it would be 60


def kubeconfig_with(path: Path, cluster: Cluster, *, ca: str, tls_server_name: str) -> Path:
    content = yaml.safe_load(kubeconfig(name="test", url=cluster.url, ca=ca, user={"token": cluster.token}))
    content["clusters"][0]["cluster"]["tls-server-name"] = tls_server_name
    path.write_text(yaml.safe_dump(content))
    return path


async def test_the_certificate_may_be_for_another_name_if_the_kubeconfig_states_so(
    cluster: Cluster, tmp_path: Path, made_by: type[Opened]
) -> None:
    path = kubeconfig_with(tmp_path / "k", cluster, ca=cluster.ca, tls_server_name="kubernetes.default.svc")
    async with made_by(load_kubeconfig(path)) as transport:
        assert (await Client(transport, user_agent="client-test").get(NAMESPACES, "default"))["kind"] == "Namespace"


@pytest.mark.parametrize("wrong", ["name", "authority"])
async def test_a_certificate_that_can_not_be_trusted_is_an_error(
    wrong: str, cluster: Cluster, tmp_path: Path, made_by: type[Opened]
) -> None:
    ca = Authority.create("other").bundle.decode() if wrong == "authority" else cluster.ca
    name = "somebody.else" if wrong == "name" else ""
    path = kubeconfig_with(tmp_path / "k", cluster, ca=ca, tls_server_name=name)
    async with made_by(load_kubeconfig(path)) as transport:
        with pytest.raises(Unreachable, match="certificate verify failed"):
            await Client(transport, user_agent="client-test").get(NAMESPACES, "default")


# --- credentials that others renew


@pytest.fixture
async def token_file(proxy: FaultProxy, tmp_path: Path, cluster: Cluster) -> Path:
    path = tmp_path / "token"
    ca = cluster.authority.bundle.decode()
    (tmp_path / "with-file").write_text(kubeconfig(name="p", url=proxy.url, ca=ca, user={"tokenFile": "token"}))
    path.write_text("outdated")
    return path


@pytest.fixture
async def file_client(token_file: Path, made_by: type[Opened]) -> AsyncIterator[Client]:
    async with made_by(load_kubeconfig(token_file.parent / "with-file")) as transport:
        await transport.connection.credentials.authorization()  # the outdated one is known now
        yield Client(transport, user_agent="client-test")


async def test_a_token_that_is_not_taken_is_read_again(
    file_client: Client, token_file: Path, proxy: FaultProxy, cluster: Cluster
) -> None:
    token_file.write_text(cluster.token)
    assert (await file_client.get(NAMESPACES, "default"))["kind"] == "Namespace"
    assert [entry.status for entry in answered(proxy)] == [401, 200]


async def test_a_token_is_read_again_once(file_client: Client, proxy: FaultProxy) -> None:
    with pytest.raises(Unauthorized, match="Unauthorized"):
        await file_client.get(NAMESPACES, "default")
    assert [entry.status for entry in answered(proxy)] == [401, 401]


async def test_a_token_is_read_again_whatever_went_wrong_before(
    file_client: Client, token_file: Path, proxy: FaultProxy, cluster: Cluster
) -> None:
    token_file.write_text(cluster.token)
    proxy.rules.add(Rule(fault=throttled(retry_after=0), times=1), Rule(fault=unauthorized(), times=1))
    assert (await file_client.get(NAMESPACES, "default"))["kind"] == "Namespace"
    assert [entry.status for entry in answered(proxy)] == [429, 401, 200]


async def test_a_watch_drops_a_token_that_is_not_taken(
    file_client: Client, token_file: Path, cluster: Cluster, namespace: str
) -> None:
    token_file.write_text(cluster.token)
    options: dict[str, Any] = {"resource_version": "0", "timeout_seconds": 60, "idle_timeout": 60}
    with pytest.raises(Unauthorized):
        async with file_client.watch(CONFIG_MAPS, Selection(namespace), **options):
            pass
    async with file_client.watch(CONFIG_MAPS, Selection(namespace), **options):
        pass


async def test_a_fixed_token_is_not_tried_twice(client: Client, proxy: FaultProxy) -> None:
    proxy.rules.add(Rule(fault=unauthorized()))
    with pytest.raises(Unauthorized):
        await client.get(NAMESPACES, "default")
    assert methods(proxy) == ["GET"]


async def test_a_token_file_that_vanished_is_a_failure_to_reach_the_api_server(
    token_file: Path, proxy: FaultProxy, made_by: type[Opened]
) -> None:
    token_file.unlink()
    async with made_by(load_kubeconfig(token_file.parent / "with-file")) as transport:
        with pytest.raises(Unreachable, match=f"cannot read the token file {token_file}"):
            await Client(transport, user_agent="client-test").get(NAMESPACES, "default")
    assert methods(proxy) == []


# --- errors carry the words of the API server


async def test_what_is_not_there_is_not_found(client: Client, namespace: str) -> None:
    with pytest.raises(NotFound) as error:
        await client.get(CONFIG_MAPS, Key(namespace, "missing"))
    assert str(error.value) == 'configmaps "missing" not found'
    assert error.value.details["name"] == "missing"


async def test_what_is_there_exists_already(client: Client, namespace: str) -> None:
    await client.create(CONFIG_MAPS, config_map(namespace, "twice"))
    with pytest.raises(AlreadyExists) as error:
        await client.create(CONFIG_MAPS, config_map(namespace, "twice"))
    assert str(error.value) == 'configmaps "twice" already exists'
    assert isinstance(error.value, Conflict)


async def test_a_write_to_an_older_version_conflicts(client: Client, namespace: str) -> None:
    first = await client.create(CONFIG_MAPS, config_map(namespace, "c"))
    await client.replace(CONFIG_MAPS, {**first, "data": {"a": "b"}})
    with pytest.raises(Conflict, match=r'^Operation cannot be fulfilled on configmaps "c": ') as error:
        await client.replace(CONFIG_MAPS, first)
    assert not isinstance(error.value, AlreadyExists)


async def test_a_deletion_holds_to_its_preconditions(client: Client, namespace: str) -> None:
    created = await client.create(CONFIG_MAPS, config_map(namespace, "c"))
    preconditions: list[dict[str, Any]] = [{"uid": str(uuid.uuid4())}, {"resource_version": "1"}]
    for precondition in preconditions:
        with pytest.raises(Conflict, match="recondition"):
            await client.delete(CONFIG_MAPS, Key(namespace, "c"), **precondition)
    await client.delete(CONFIG_MAPS, Key(namespace, "c"), uid=uid(created), propagation="Background")
    with pytest.raises(NotFound):
        await client.delete(CONFIG_MAPS, Key(namespace, "c"))


async def test_what_is_invalid_is_named_by_field(client: Client, namespace: str) -> None:
    with pytest.raises(
        Invalid, match=r'^ConfigMap "UPPER" is invalid: metadata\.name: Invalid value: "UPPER": '
    ) as error:
        await client.create(CONFIG_MAPS, config_map(namespace, "UPPER"))
    assert [cause["field"] for cause in error.value.causes] == ["metadata.name"]
    assert error.value.status == 422


async def test_what_can_not_be_read_is_a_bad_request(client: Client, namespace: str) -> None:
    path = CONFIG_MAPS.path(namespace=namespace)
    with pytest.raises(BadRequest, match="ConfigMap in version"):
        await client.request("POST", path, body=b'{"kind": "ConfigMap", "apiVersion": "v1", "data": 5}')


async def test_who_has_no_right_is_forbidden(cluster: Cluster, namespace: str) -> None:
    async with Transport(load_kubeconfig(cluster.kubeconfig_for("somebody"))) as transport:
        stranger = Client(transport, user_agent="client-test")
        with pytest.raises(Forbidden) as error:
            await stranger.get(CONFIG_MAPS, Key(namespace, "x"))
    assert str(error.value) == (
        'configmaps "x" is forbidden: User "somebody" cannot get resource "configmaps" in API group "" '
        f'in the namespace "{namespace}"'
    )


async def test_an_answer_that_is_no_json_is_no_answer(client: Client, proxy: FaultProxy, namespace: str) -> None:
    proxy.rules.add(Rule(fault=HTML))
    for request in (
        client.get(CONFIG_MAPS, Key(namespace, "x")),
        client.create(CONFIG_MAPS, config_map(namespace, "x")),
        client.list(CONFIG_MAPS, Selection(namespace)),
        Discovery(client).find("v1", "ConfigMap"),
    ):
        with pytest.raises(Unreachable, match="the response is not (valid|a list of objects in) JSON"):
            await request


async def test_a_redirection_is_no_success(client: Client, proxy: FaultProxy, namespace: str) -> None:
    proxy.rules.add(Rule(fault=Answer(name="redirect", code=302, reason="", message="Found", plain=True)))
    with pytest.raises(NoStatus, match="Found") as error:
        await client.delete(CONFIG_MAPS, Key(namespace, "x"))
    assert error.value.status == 302
    assert methods(proxy) == ["DELETE"]


async def test_a_message_that_is_no_status_is_shown_as_it_is(client: Client, proxy: FaultProxy, namespace: str) -> None:
    proxy.rules.add(Rule(fault=Answer(name="bad", code=502, reason="", message="upstream away " * 100, plain=True)))
    with pytest.raises(ServerFailure) as error:
        await client.get(CONFIG_MAPS, Key(namespace, "x"))
    assert str(error.value).startswith("upstream away")
    assert len(str(error.value)) <= 500


async def test_without_a_name_nothing_is_queried(client: Client, proxy: FaultProxy, namespace: str) -> None:
    nameless = config_map(namespace, "")
    for request in (
        client.get(CONFIG_MAPS, Key(namespace, "")),
        client.delete(CONFIG_MAPS, Key(namespace, "")),
        client.patch(CONFIG_MAPS, Key(namespace, ""), {}),
        client.replace(CONFIG_MAPS, nameless),
    ):
        with pytest.raises(ValueError, match="without a name"):
            await request
    assert methods(proxy) == []


async def test_a_name_can_not_lead_to_another_path(
    client: Client, admin: Client, proxy: FaultProxy, namespace: str
) -> None:
    await admin.create(CONFIG_MAPS, config_map(namespace, "kept"))
    for name in ("kept?x=y", "kept#", "kept ", "KEPT"):
        with pytest.raises(NotFound):
            await client.delete(CONFIG_MAPS, Key(namespace, name))
    for name in ("../configmaps/kept", "kept/", "kept%2f", ".", ".."):
        with pytest.raises(NotFound, match=r'^invalid resource name "[^"]+": \[may not '):
            await client.delete(CONFIG_MAPS, Key(namespace, name))
    with pytest.raises(NotFound, match=f'^invalid namespace "{namespace}/configmaps": '):
        await client.delete(CONFIG_MAPS, Key(f"{namespace}/configmaps", "kept"))
    assert methods(proxy) == ["DELETE"] * 4
    assert await admin.get(CONFIG_MAPS, Key(namespace, "kept"))


# --- many objects


class SmallPages(Client):
    async def list_page(self, *arguments: Any, **options: Any) -> Object:
        return await super().list_page(*arguments, **{**options, "limit": 3})


async def test_pages_that_are_too_long_become_smaller(
    ten: list[str], client: Client, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "_LONGEST_ANSWER", 3000)
    found = await client.list(CONFIG_MAPS, Selection(namespace, "test=ten"))
    assert [metadata(obj)["name"] for obj in found] == ten


async def test_an_answer_that_is_too_long_is_not_read(
    ten: list[str], client: Client, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "_LONGEST_ANSWER", 100)
    with pytest.raises(AnswerTooLong, match="the response is larger than 100 bytes"):
        await client.list(CONFIG_MAPS, Selection(namespace, "test=ten"))
    with pytest.raises(AnswerTooLong):
        await client.get(CONFIG_MAPS, Key(namespace, ten[0]))


@pytest.fixture
async def ten(admin: Client, namespace: str) -> list[str]:
    names = [f"c-{number}" for number in range(10)]
    for name in names:
        obj = config_map(namespace, name, some="data")
        obj["metadata"]["labels"] = {"parity": "even" if int(name[-1]) % 2 == 0 else "odd", "test": "ten"}
        await admin.create(CONFIG_MAPS, obj)
    return names


@pytest.mark.parametrize("form", list(Form))
async def test_a_list_in_pages_equals_a_list_in_one(
    *, form: Form, client: Client, transport: Opened, proxy: FaultProxy, namespace: str, ten: list[str]
) -> None:
    selection = Selection(namespace, label_selector="test=ten,parity in (even,odd)")
    whole = await client.list(CONFIG_MAPS, selection, form=form)
    paged = await SmallPages(transport, user_agent="paged").list(CONFIG_MAPS, selection, form=form)
    assert paged == whole
    assert [metadata(obj)["name"] for obj in whole] == ten
    assert {(obj["apiVersion"], obj["kind"]) for obj in whole} == {("v1", "ConfigMap")}
    assert len([entry for entry in proxy.log if entry.request.user_agent == "paged"]) == 4


async def test_selectors_select(client: Client, namespace: str, ten: list[str]) -> None:
    even = await client.list(CONFIG_MAPS, Selection(namespace, label_selector="parity=even"))
    assert [metadata(obj)["name"] for obj in even] == ten[::2]
    third = await client.list(CONFIG_MAPS, Selection(namespace, field_selector="metadata.name=c-3"))
    assert [metadata(obj)["name"] for obj in third] == ["c-3"]
    await client.delete_collection(CONFIG_MAPS, Selection(namespace, label_selector="parity=even"))
    left = await client.list(CONFIG_MAPS, Selection(namespace, label_selector="test=ten"))
    assert [metadata(obj)["name"] for obj in left] == ten[1::2]


async def test_a_list_that_expires_half_way_is_complete_in_the_end(
    client: Client, admin: Client, proxy: FaultProxy, namespace: str, ten: list[str]
) -> None:
    proxy.rules.add(Rule(fault=expired(), query="continue=", after=1, times=1))
    store = Store(View(CONFIG_MAPS, without_managed_fields))
    source = store.source(namespace)
    watcher = Watcher(client, CONFIG_MAPS, Selection(namespace, label_selector="test=ten"), page_size=3)
    async for event in watcher.events():
        source.apply(event)
        if isinstance(event, Present) and metadata(event.object)["name"] == "c-1" and not store.synced.is_set():
            try:
                await admin.delete(CONFIG_MAPS, Key(namespace, "c-0"))
            except NotFound:
                continue
        if store.synced.is_set():
            break
    assert proxy.injected["expired"] == 1
    assert sorted(k for k, _ in store.items()) == [Key(namespace, name) for name in ten[1:]]


async def test_metadata_alone_has_no_data(client: Client, proxy: FaultProxy, namespace: str, ten: list[str]) -> None:
    known = await client.get(CONFIG_MAPS, Key(namespace, "c-1"), form=Form.METADATA)
    assert (known["apiVersion"], known["kind"], metadata(known)["name"]) == ("v1", "ConfigMap", "c-1")
    assert metadata(known)["labels"]["test"] == "ten"
    listed = await client.list(CONFIG_MAPS, Selection(namespace, label_selector="test=ten"), form=Form.METADATA)
    assert not any("data" in obj for obj in (known, *listed))


# --- the guard of writes


class LostError(KubeError):
    pass


async def test_the_guard_is_queried_before_writes_only(transport: Opened, namespace: str) -> None:
    requested: list[str] = []
    doing = ""

    def guard() -> float:
        requested.append(doing)
        return 30.0

    client = Client(transport, user_agent="client-test", write_guard=guard)
    body = config_map(namespace, "c")
    steps: dict[str, Callable[[], Awaitable[object]]] = {
        "list": lambda: client.list(CONFIG_MAPS, Selection(namespace)),
        "create": lambda: client.create(CONFIG_MAPS, body),
        "get": lambda: client.get(CONFIG_MAPS, Key(namespace, "c")),
        "replace": lambda: client.replace(CONFIG_MAPS, body),
        "patch": lambda: client.patch(CONFIG_MAPS, Key(namespace, "c"), {"data": {"a": "b"}}),
        "apply": lambda: client.request(
            "PATCH",
            CONFIG_MAPS.path(namespace=namespace, name="d"),
            params={"fieldManager": "test"},
            body=config_map(namespace, "d"),
            content_type="application/apply-patch+yaml",
        ),
        "delete": lambda: client.delete(CONFIG_MAPS, Key(namespace, "c")),
        "delete collection": lambda: client.delete_collection(CONFIG_MAPS, Selection(namespace)),
    }
    for doing, step in steps.items():  # noqa: B007 - the guard reads it
        await step()
    async with client.watch(
        CONFIG_MAPS, Selection(namespace), resource_version="0", timeout_seconds=60, idle_timeout=60
    ):
        pass
    assert requested == ["create", "replace", "patch", "apply", "delete", "delete collection"]


async def test_a_guard_that_refuses_keeps_the_write_back(transport: Opened, proxy: FaultProxy, namespace: str) -> None:
    def guard() -> float:
        raise LostError("not the leader")

    client = Client(transport, user_agent="client-test", write_guard=guard)
    with pytest.raises(LostError):
        await client.create(CONFIG_MAPS, config_map(namespace, "c"))
    assert methods(proxy) == []


async def test_no_write_outlives_what_the_guard_allows(transport: Opened, proxy: FaultProxy, namespace: str) -> None:
    proxy.rules.add(Rule(fault=Silence(), methods=("POST",)))
    client = Client(transport, user_agent="client-test", write_guard=lambda: 0.3)
    started = time.monotonic()
    with pytest.raises(Unreachable):
        await client.create(CONFIG_MAPS, config_map(namespace, "c"), timeout=60)
    assert time.monotonic() - started < 30


async def test_the_guard_is_queried_again_before_a_write_is_repeated(
    transport: Opened, proxy: FaultProxy, namespace: str
) -> None:
    proxy.rules.add(Rule(fault=throttled(retry_after=0), times=1))
    answers: Iterator[float] = iter([30.0])

    def guard() -> float:
        try:
            return next(answers)
        except StopIteration:
            raise LostError("not the leader any more") from None

    client = Client(transport, user_agent="client-test", write_guard=guard)
    with pytest.raises(LostError):
        await client.create(CONFIG_MAPS, config_map(namespace, "c"))
    assert methods(proxy) == ["POST"]


# --- watches


def watching(client: Client, namespace: str, *, since: str = "0") -> Any:
    return client.watch(CONFIG_MAPS, Selection(namespace), resource_version=since, timeout_seconds=60, idle_timeout=60)


async def watch_to_the_end(client: Client, namespace: str, *, since: str = "0") -> None:
    async with asyncio.timeout(60), watching(client, namespace, since=since) as events:
        async for _ in events:
            pass


async def test_an_event_may_be_as_long_as_objects_get(
    client: Client, admin: Client, proxy: FaultProxy, namespace: str
) -> None:
    proxy.rules.add(Rule(fault=Trickle(size=10_000, pause=0), path=PATH, watch=True))
    big = "x" * 1_000_000
    created = await admin.create(CONFIG_MAPS, config_map(namespace, "big", big=big))
    await admin.create(CONFIG_MAPS, config_map(namespace, "small"))
    since = str(int(metadata(created)["resourceVersion"]) - 1)
    seen = {}
    async with asyncio.timeout(60), watching(client, namespace, since=since) as events:
        async for event in events:
            seen[metadata(event["object"]).get("name")] = event["object"]
            if "small" in seen:
                break
    assert seen["big"]["data"]["big"] == big
    assert seen["small"]["kind"] == "ConfigMap"


async def test_an_event_longer_than_objects_get_ends_the_watch(
    client: Client, admin: Client, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "_LONGEST_WATCH_LINE", 100_000)
    created = await admin.create(CONFIG_MAPS, config_map(namespace, "big", big="x" * 1_000_000))
    since = str(int(metadata(created)["resourceVersion"]) - 1)
    with pytest.raises(Unreachable, match=r"a watch event of configmaps\.v1 is longer than 100000 bytes"):
        await watch_to_the_end(client, namespace, since=since)


async def test_a_watch_that_is_answered_with_something_else_is_an_error(
    client: Client, proxy: FaultProxy, namespace: str
) -> None:
    proxy.rules.add(Rule(fault=HTML, watch=True))
    with pytest.raises(Unreachable, match="the response is not valid JSON"):
        await watch_to_the_end(client, namespace)


@pytest.mark.parametrize("closes_first", [True, False], ids=["session first", "watches first"])
async def test_a_session_with_open_watches_closes_without_leaving_anything(
    closes_first: bool, made_by: type[Opened], cluster: Cluster, namespace: str
) -> None:
    opened = asyncio.Event()

    async def watch(client: Client) -> None:
        async with watching(client, namespace) as events:
            opened.set()
            async for _ in events:
                pass

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()  # what other tests left is not reported here
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        transport = made_by(load_kubeconfig(cluster.kubeconfig))
        client = Client(transport, user_agent="client-test")
        watches = []
        for _ in range(3):
            opened.clear()
            watches.append(asyncio.create_task(watch(client)))
            await opened.wait()
        await client.get(NAMESPACES, "default")  # an idle connection
        if closes_first:
            await transport.close()
        for task in watches:
            task.cancel()
        await asyncio.gather(*watches, return_exceptions=True)
        await transport.close()
        del transport, client, watches
        await asyncio.sleep(0.05)
        gc.collect()
        await asyncio.sleep(0)
    assert [str(warning.message) for warning in warned] == []


@pytest.mark.parametrize(
    "lasting", ["watch=1", "resourceVersion=999999999999"], ids=["in its body", "before its head: of a later state"]
)
def test_a_request_that_is_cancelled_has_closed_its_connection(
    cluster: Cluster, namespace: str, lasting: str, made_by: type[Opened]
) -> None:
    """At once: when the API server has agreed to it there may be no event loop any more."""

    async def play() -> None:
        async with made_by(load_kubeconfig(cluster.kubeconfig)) as transport:
            client = Client(transport, user_agent="client-test")
            requested = asyncio.create_task(client.request("GET", f"/api/v1/namespaces/{namespace}/secrets?{lasting}"))
            await client.get(NAMESPACES, "default")
            await asyncio.sleep(0.2)
            requested.cancel()
            await asyncio.wait({requested})
            assert requested.cancelled()

    gc.collect()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        asyncio.run(play())
        gc.collect()
    assert [str(warning.message) for warning in warned] == []


@pytest.mark.parametrize("at_once", [1, 3])
async def test_connections_that_only_a_burst_needed_are_given_up(
    cluster: Cluster, proxy: FaultProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """Though calls go on: each of ten connections would serve twice in the time after which it is given up."""
    monkeypatch.setattr("kube.runtime.transport._IDLE_SECONDS", 1.0)
    proxy.write_kubeconfig(tmp_path / "kubeconfig", token=cluster.token)
    burst = Rule(fault=Delay(seconds=1))
    proxy.rules.add(burst)
    async with Transport(load_kubeconfig(tmp_path / "kubeconfig")) as transport, asyncio.timeout(60):
        client = Client(transport, user_agent="client-test/1.0")
        await asyncio.gather(*(client.get(NAMESPACES, "default") for _ in range(10)))
        assert proxy.open_connections > 5
        proxy.rules.remove(burst)
        while proxy.open_connections > at_once:
            await asyncio.gather(*(client.get(NAMESPACES, "default") for _ in range(at_once)))
            await asyncio.sleep(0.05)


# --- what others see of us


async def test_the_user_agent_arrives(client: Client, proxy: FaultProxy, namespace: str) -> None:
    await client.get(NAMESPACES, "default")
    async with watching(client, namespace):
        pass
    assert {entry.request.user_agent for entry in proxy.log} == {"client-test/1.0"}


@pytest.mark.parametrize("made_by", [Transport], indirect=True)
async def test_requests_are_counted_by_their_status(client: Client, proxy: FaultProxy, transport: Opened) -> None:
    def count(code: str) -> float:
        labels = {"code": code, "method": "GET", "host": transport.host}
        return REGISTRY.get_sample_value("rest_client_requests_total", labels) or 0

    # A proxy of another test may have had the same port.
    before = count("200"), count("404"), count("<error>")
    await client.get(NAMESPACES, "default")
    with pytest.raises(NotFound):
        await client.get(NAMESPACES, "missing")
    proxy.rules.add(Rule(fault=Reset()))
    with pytest.raises(Unreachable):
        await client.get(NAMESPACES, "default")
    assert transport.host == proxy.url.removeprefix("https://")
    assert (count("200"), count("404")) == (before[0] + 1, before[1] + 1)
    assert count("<error>") >= before[2] + 1


# --- answers that no API server gave

CALLS: dict[str, Callable[[Client, str], Awaitable[object]]] = {
    "get": lambda client, ns: client.get(CONFIG_MAPS, Key(ns, "c")),
    "create": lambda client, ns: client.create(CONFIG_MAPS, config_map(ns, "c")),
    "replace": lambda client, ns: client.replace(CONFIG_MAPS, config_map(ns, "c")),
    "patch": lambda client, ns: client.patch(CONFIG_MAPS, Key(ns, "c"), {}),
    "delete": lambda client, ns: client.delete(CONFIG_MAPS, Key(ns, "c")),
    "delete collection": lambda client, ns: client.delete_collection(CONFIG_MAPS, Selection(ns)),
    "list": lambda client, ns: client.list(CONFIG_MAPS, Selection(ns)),
    "discover": lambda client, ns: Discovery(client).find("v1", "ConfigMap"),
    "discover a group": lambda client, ns: Discovery(client).find("example.com/v1", "Widget"),
    "discover versions": lambda client, ns: Discovery(client).find_any_version("example.com/v1", "Widget"),
}


@pytest.mark.parametrize("answer", STRANGERS, ids=lambda answer: answer.name)
@pytest.mark.parametrize("call", CALLS)
async def test_the_answer_of_another_client_is_neither_success_nor_absence(
    client: Client, proxy: FaultProxy, call: str, answer: Answer
) -> None:
    proxy.rules.add(Rule(fault=answer))
    with pytest.raises((Unreachable, Unauthorized)):
        await CALLS[call](client, "no-request-reaches-it")


async def test_a_kind_is_absent_by_discovery_alone(client: Client, proxy: FaultProxy, namespace: str) -> None:
    widgets = Resource("example.com", "v1", "Widget", "widgets", namespaced=True)
    with pytest.raises(KindNotServed):
        await client.list(widgets)
    gadgets = Resource("apps", "v1", "Gadget", "gadgets", namespaced=True)
    with pytest.raises(KindNotServed):
        await client.list(gadgets)
    proxy.rules.add(Rule(fault=STRANGERS[0], path="^/apis$"))
    with pytest.raises(NoStatus):
        await client.list(widgets)
    proxy.rules.clear()
    proxy.rules.add(Rule(fault=STRANGERS[0], path="^/api/v1"), Rule(fault=STRANGERS[0], path="^/apis/rbac"))
    for kind in (CONFIG_MAPS, Resource("rbac.authorization.k8s.io", "v1", "Role", "roles", namespaced=True)):
        with pytest.raises(NoStatus):
            await client.list(kind)
