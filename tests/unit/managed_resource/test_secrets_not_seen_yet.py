"""A Secret is reported as missing only if the API server reports it: watches may be late."""

from typing import Any

import pytest

from agent.resource_manager.managed_resource.source import SecretVersion, Source
from gardener import keys
from kit.objects import secret
from kube.errors import KubeError, NotFound, Unreachable
from kube.objects import Key, Object, key
from kube.runtime.cache import Store, View
from kube.runtime.watch import ListBegins, ListEnds

NAME = Key("n", "s")


class Cluster:
    """Watches that have seen nothing since version 10, and the API server."""

    def __init__(self, *objects: Object, fails: KubeError | None = None) -> None:
        self._objects = objects
        self._fails = fails
        self.requested = 0

    def acquire(self, view: View[Any], *, needed_at_start: bool) -> Store[Any]:
        store = Store(view, needed_at_start=needed_at_start)
        source = store.source("")
        source.apply(ListBegins(10))
        source.apply(ListEnds(10))
        return store

    async def find(self, _kind: object, name: Key) -> Object | None:
        self.requested += 1
        if self._fails is not None:
            raise self._fails
        return {key(each): each for each in self._objects}.get(name)


def source_of(cluster: Any) -> Source:
    return Source(client=cluster, caches=cluster, memory=1 << 20)


async def test_what_no_watch_has_seen_yet_is_read_and_known_from_then_on() -> None:
    cluster = Cluster(secret("n/s", {"k": b"v"}, uid="u", resourceVersion="11"))
    source = source_of(cluster)
    assert await source.secret_version(NAME) == SecretVersion("u", 11)
    assert (await source.read_secret(NAME))["data"]
    assert cluster.requested == 1


async def test_what_does_not_exist_is_requested_once_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    source = source_of(cluster)
    for _ in range(3):
        with pytest.raises(NotFound, match='Secret "s" not found'):
            await source.secret_version(NAME)
    assert cluster.requested == 1
    monkeypatch.setattr("agent.resource_manager.managed_resource.source._ABSENT_SECONDS", -1.0)
    with pytest.raises(NotFound):
        await source.secret_version(NAME)
    assert cluster.requested == 2


async def test_without_an_answer_of_the_api_server_it_is_not_reported_missing() -> None:
    with pytest.raises(Unreachable):
        await source_of(Cluster(fails=Unreachable("no answer"))).secret_version(NAME)


async def test_a_secret_that_is_no_manifest_is_not_reported_to_be_missing() -> None:
    kept = secret("n/s", {}, type=keys.REVISION_TYPE, resourceVersion="11")
    with pytest.raises(KubeError, match="holds an applied version"):
        await source_of(Cluster(kept)).secret_version(NAME)
