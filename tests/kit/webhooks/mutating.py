"""What tests of mutating webhooks share: state without a cluster, pods of all sorts, and what holds for every webhook."""

import asyncio
import copy
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any, TypeVar, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kube.errors import ApiError, NotFound
from kube.objects import Key, Object, key_of, labels
from kube.resources import Resource
from kube.runtime.cache import Store, View
from kube.runtime.watch import ListBegins, ListEnds, Present
from process.clusters import Cluster
from webhooks.admission import Answer, Handler, Kind, Mutation, Refusal, Request, ResourceName
from webhooks.state import SharedListers

T = TypeVar("T")
JSON = Any


def at_once(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of what has to wait for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return cast("T", stop.value)
    finally:
        coroutine.close()
    raise AssertionError("it waits for something")


# --- state


class StillCaches:
    """Stores that hold the given objects; nothing ever happens to them."""

    def __init__(self, objects: Sequence[Object], namespaces: Sequence[str] = ()) -> None:
        self._objects = [
            {**obj, "metadata": {"resourceVersion": str(version), **obj["metadata"]}}
            for version, obj in enumerate(objects, start=1)
        ]
        self._namespaces = namespaces
        self.stores: dict[Resource, Store[Any]] = {}

    def acquire(self, view: View[T], *, needed_at_start: bool = False) -> Store[T]:
        store = Store(view, needed_at_start=needed_at_start)
        source = store.source("")
        source.apply(ListBegins(0))
        selected = dict(pair.split("=") for pair in view.label_selector.split(",") if pair)
        for obj in self._objects:
            of_kind = (obj["apiVersion"], obj["kind"]) == (view.resource.api_version, view.resource.kind)
            if of_kind and selected.items() <= labels(obj).items():
                source.apply(Present(copy.deepcopy(obj)))
        source.apply(ListEnds(len(self._objects)))
        self.stores[view.resource] = store
        return store

    async def release(self, view: View[Any]) -> None:
        del self.stores[view.resource]

    async def tried(self, view: View[Any], *, timeout: float) -> None:
        assert view.resource in self.stores

    def covers(self, resource: Resource, namespace: str) -> bool:
        return not self._namespaces or namespace in self._namespaces


class EmptyCluster:
    """What a live read finds: nothing."""

    async def list(self, _resource: Resource, _selection: object, **_: object) -> list[Object]:
        return []

    async def get(self, resource: Resource, name: Key | str, **_: object) -> Object:
        raise NotFound(404, message=f'{resource.plural} "{key_of(name).name}" not found', reason="NotFound")


def state_of(*objects: Object, namespaces: Sequence[str] = (), client: object = None) -> SharedListers:
    """Started; what is requested is there at once."""
    caches = StillCaches(objects, namespaces)
    cluster = Cluster(
        transport=cast("Any", None),
        client=cast("Any", client or EmptyCluster()),
        caches=cast("Any", caches),
        discovery=cast("Any", None),
        namespaces=tuple(namespaces),
    )
    state = SharedListers(cluster, cluster)
    at_once(state.start())
    return state


NO_STATE = state_of()

# --- requests

POD = Kind("", "v1", "Pod")


def request(
    obj: JSON,
    *,
    old: JSON = None,
    kind: Kind = POD,
    plural: str = "",
    namespace: str = "ns",
    name: str = "",
    operation: str = "CREATE",
) -> Request:
    resource = ResourceName(kind.group, kind.version, plural or f"{kind.kind.lower()}s")
    return Request(
        uid="u1",
        kind=kind,
        resource=resource,
        operation=operation,
        name=name,
        namespace=namespace,
        object=obj,
        old_object=old,
    )


def mutated(mutation: Mutation, obj: JSON, *, kind: Kind = POD, namespace: str = "ns") -> JSON:
    """A copy of the object as the webhook makes it."""
    changed = copy.deepcopy(obj)
    at_once(cast("Any", mutation(request(changed, kind=kind, namespace=namespace), changed)))
    return changed


def refusal(mutation: Mutation, obj: JSON, *, namespace: str = "ns") -> Answer:
    """With which the webhook refuses the object."""
    with pytest.raises(Refusal) as refused:
        mutated(mutation, obj, namespace=namespace)
    return refused.value.answer


def answered(handler: Handler, requested: Request) -> Any:
    return at_once(cast("Any", handler(requested)))


def really_answered(handler: Handler, requested: Request) -> Any:
    """Of one that may wait for something."""
    return asyncio.run(cast("Any", handler(requested)))


# --- what holds for every mutation

patiently = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""For properties: a machine may be busy."""


def changed_paths(before: JSON, after: JSON, path: str = "") -> Iterator[str]:
    """Where two JSON values differ, as far down as they have the same structure."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in before.keys() | after.keys():
            if name not in before or name not in after:
                yield f"{path}.{name}".lstrip(".")
            else:
                yield from changed_paths(before[name], after[name], f"{path}.{name}".lstrip("."))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for one, other in zip(before, after, strict=True):
            yield from changed_paths(one, other, f"{path}[]")
    elif before != after or type(before) is not type(after):
        yield path


def behaves_well(mutate: Callable[[JSON], JSON], obj: JSON, *, touches: Sequence[str]) -> None:
    """It refuses, or changes what it is about and nothing else, the same way each time, and only once.

    Args:
        mutate: returns a changed copy.
        obj: anything.
        touches: the paths that it may change, with all that is below; what has no parent yet may be created.
    """
    try:
        once = mutate(obj)
    except (Refusal, ApiError):
        return
    assert once == mutate(obj)
    assert mutate(once) == once
    for path in changed_paths(obj, once):
        assert any(path.startswith(touched) or touched.startswith(f"{path}.") for touched in touches), path


# --- objects of all sorts

words = st.sampled_from(["", "a", "b", "default", "true", "false", "1", "x y", "ü"])

anything: st.SearchStrategy[JSON] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)


def record(**fields: st.SearchStrategy[JSON]) -> st.SearchStrategy[Object]:
    """An object that has some of the fields, or has them as null, and unknown ones."""
    known = {name.rstrip("_"): st.none() | strategy for name, strategy in fields.items()}
    return st.fixed_dictionaries({}, optional={**known, "foreign": anything})


def several(strategy: st.SearchStrategy[T]) -> st.SearchStrategy[list[T]]:
    return st.lists(strategy, max_size=3)


def one_of(*values: JSON) -> st.SearchStrategy[JSON]:
    return st.sampled_from(values)


def mapping(*keys: str) -> st.SearchStrategy[Object]:
    return st.dictionaries(one_of("app", *keys), words, max_size=3)


def pods(metadata: st.SearchStrategy[Object], **spec: st.SearchStrategy[JSON]) -> st.SearchStrategy[Object]:
    return record(apiVersion=st.just("v1"), kind=st.just("Pod"), metadata=metadata, spec=record(**spec))


@st.composite
def damaged(draw: st.DrawFn, objects: st.SearchStrategy[JSON]) -> JSON:
    """With anything at all in some place."""
    obj = copy.deepcopy(draw(objects))
    places = list(_places(obj))
    if not places:
        return draw(anything)
    parent, at = draw(st.sampled_from(places))
    parent[at] = draw(anything)
    return obj


def _places(value: JSON) -> Iterator[tuple[Any, Any]]:
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for at, inner in members:
        yield value, at
        yield from _places(inner)


def well_behaved(mutation: Mutation, objects: st.SearchStrategy[JSON], *, touches: Sequence[str]) -> Callable[[], None]:
    """The test that a mutation behaves well with these objects, and with damaged ones."""

    @patiently
    @given(objects | damaged(objects))
    def test(obj: JSON) -> None:
        behaves_well(lambda found: mutated(mutation, found), obj, touches=touches)

    return test
