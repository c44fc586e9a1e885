"""Shoots in a garden that accepts many of them: what is stored is complete and passes again, whatever it was made of."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kit.webhooks.mutating import state_of
from kit.webhooks.shoots import GARDEN as GARDEN_OBJECTS
from kit.webhooks.shoots import operation, requested, submitted, with_fields, worker
from kube.objects import Object
from webhooks.garden.common.findings import ratcheted
from webhooks.garden.common.write import Write
from webhooks.garden.kinds.shoot.kind import SHOOT
from webhooks.garden.lookups import Lookups
from webhooks.generic import copied

POOL: dict[str, list[Any]] = {
    "machine__image": [None, {"name": "linux"}, {"name": "linux", "version": "1.0.0"}, {"name": "none"}],
    "maximum": [1, 2, 5],
    "zones": [["a"], ["a", "b"], ["z"]],
    "volume": [{"type": "std", "size": "20Gi"}, {"size": "1Gi"}],
    "kubernetes__version": ["1.29.8", "1.30", "1"],
    "kubernetes__kubelet": [{"maxPods": 250}, {"failSwapOn": False, "featureGates": {"NodeSwap": True}}],
    "labels": [{"a": "b"}, {"a b": "c"}],
}
FIELDS: dict[str, list[Any]] = {
    "kubernetes__version": ["", "1", "1.30", "1.30.1", "1.30.5", "1.31.2", "1.99.9"],
    "purpose": ["production", "evaluation", "infrastructure"],
    "seedName": ["seed", "none"],
    "networking": [{"type": "calico", "nodes": "10.250.0.0/16"}, {"type": "calico", "pods": "10.20.0.0/16"}, {}],
    "dns": [{"domain": "a.dev.ex.org"}, {"domain": "own.org", "providers": [{"type": "local", "secretName": "cred"}]}],
    "hibernation": [{"enabled": True}, {"schedules": [{"start": "@daily"}]}, {"schedules": [{}]}],
    "maintenance": [{"confineSpecUpdateRollout": True}, {"timeWindow": {"begin": "x", "end": "010000+0000"}}],
    "tolerations": [[{"key": "w"}], [{"key": "d", "value": "v"}], [{"key": "x"}]],
    "extensions": [[{"type": "some"}], [{"type": "all", "disabled": True}], [{"type": "none"}]],
    "addons": [{"nginxIngress": {"enabled": True}}],
    "cloudProfile": [None, {"name": "local"}],
    "cloudProfileName": ["local"],
    "secretBindingName": [None, "none"],
    "meta__annotations": [{"gardener.cloud/operation": "reconcile"}, {"shoot.gardener.cloud/tasks": "a,a, b"}],
}
STATUSES = [None, operation(), operation("Create", "Failed"), operation("Migrate", "Processing"), {"seedName": "other"}]


def some(choices: dict[str, list[Any]], most: int) -> st.SearchStrategy[dict[str, Any]]:
    chosen = st.lists(st.sampled_from(sorted(choices)), unique=True, max_size=most)
    return chosen.flatmap(lambda names: st.fixed_dictionaries({name: st.sampled_from(choices[name]) for name in names}))


@st.composite
def shoots(draw: st.DrawFn) -> Object:
    names = draw(st.lists(st.sampled_from(["w", "v", "u"]), unique=True, min_size=0, max_size=2))
    pools = [worker(name, **draw(some(POOL, 2))) for name in names]
    made = submitted(**draw(some(FIELDS, 3)))
    return with_fields(made, spec__provider__workers=pools, status=draw(st.sampled_from(STATUSES)))


GARDEN = requested()
STATE = state_of(*GARDEN_OBJECTS)


def without_image_labels(obj: Object) -> Object:
    """An image that was filled in is labelled with the next write."""
    labels = {name: value for name, value in obj["metadata"]["labels"].items() if "operatingsystemconfig" not in name}
    return with_fields(obj, metadata__labels=labels)


@settings(max_examples=300, deadline=None)
@given(shoots())
def test_what_is_accepted_passes_again_unchanged(sent: Object) -> None:
    created = GARDEN.create(sent)
    assert created.code in {200, 403, 422}, created.message
    if created.status is None:
        again = GARDEN.create(created.object)
        assert again.status is None
        assert without_image_labels(again.object) == without_image_labels(created.object)
        assert GARDEN.update(created.object, created.object).status is None


@settings(max_examples=300, deadline=None)
@given(shoots(), shoots())
def test_every_change_gets_an_answer_and_a_label_can_always_be_added(old: Object, new: Object) -> None:
    assert GARDEN.update(old, new).code in {200, 403, 422}
    created = GARDEN.create(old)
    if created.status is None:
        labelled = with_fields({**created.object, "status": old.get("status")}, metadata__labels={"a": "b"})
        assert GARDEN.update({**created.object, "status": old.get("status")}, labelled).status is None


META: dict[str, list[Any]] = {
    "metadata__annotations": [{"gardener.cloud/operation": "retry"}, {"confirmation.gardener.cloud/deletion": "true"}],
    "metadata__labels": [{"a": "b"}],
    "metadata__finalizers": [["gardener"]],
    "metadata__deletionTimestamp": ["2026-01-01T00:00:00Z"],
}


def request(state: Any = STATE) -> dict[str, Any]:
    seen = Lookups(state, SHOOT.reads).of_request()
    return {"namespace": "garden-dev", "name": "a", "user": GARDEN.user, "garden": seen}


@settings(max_examples=300, deadline=None)
@given(shoots(), some(META, 3), st.sampled_from(STATUSES), some(META, 3))
def test_rules_of_the_spec_find_nothing_new_while_it_stays(old: Object, was: Any, status: Any, now: Any) -> None:
    """That is why they are not queried then."""
    old = with_fields({**old, "status": status}, **was)
    new = with_fields(old, **now)
    write = Write(operation="UPDATE", new=new, old=old, **request())
    for rule in (*SHOOT.of_spec.checks, *SHOOT.of_spec.references):
        assert not ratcheted(rule(write), new, rule(write.of_old()), old), rule
    for rule in SHOOT.of_spec.changes:
        assert not list(rule(write)), rule


@settings(max_examples=100, deadline=None)
@given(shoots())
def test_defaults_do_not_depend_on_being_set_twice(sent: Object) -> None:
    write = Write(operation="CREATE", new=copied(sent), old={}, **request(state_of()))
    SHOOT.mutate(write)
    once = copied(write.new)
    SHOOT.mutate(write)
    assert write.new == once
