"""What was managed before, what is wanted now, and what has to be remembered."""

import pytest

from gardener.managed_resource.equivalences import Equivalences
from gardener.managed_resource.inventory import Inventory, all_listed, shortened
from kube.objects import Object


def ref(group_version: str, kind: str, name: str = "n", **more: object) -> Object:
    return {"apiVersion": group_version, "kind": kind, "name": name, "namespace": "ns", **more}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("apps/v1 Deployment", "apps/v1beta1 Deployment"),
        ("extensions/v1beta1 Deployment", "apps/v1 Deployment"),
        ("apps/v1 DaemonSet", "extensions/v1beta1 DaemonSet"),
        ("extensions/v1beta1 Ingress", "networking.k8s.io/v1 Ingress"),
        ("extensions/v1beta1 NetworkPolicy", "networking.k8s.io/v1 NetworkPolicy"),
    ],
)
def test_an_object_is_found_under_another_version_and_under_an_equivalent_kind(old: str, new: str) -> None:
    reference = ref(*old.split())
    inventory = Inventory([reference], Equivalences())
    assert inventory.find(ref(*new.split())) is reference
    assert inventory.unwanted() == []


def test_what_is_not_looked_up_is_unwanted() -> None:
    a, b, c = (ref("v1", "ConfigMap", name) for name in "abc")
    inventory = Inventory([c, b, a], Equivalences())
    assert inventory.find(b) is b
    assert inventory.find(ref("v1", "Secret", "a")) is None
    assert inventory.unwanted() == [a, c]


def test_of_exact_and_equivalent_entries_only_the_exact_one_is_wanted() -> None:
    exact, equivalent = ref("apps/v1", "Deployment"), ref("extensions/v1beta1", "Deployment")
    inventory = Inventory([equivalent, exact], Equivalences())
    assert inventory.find(ref("apps/v1", "Deployment")) is exact
    assert inventory.unwanted() == [equivalent]


def kinds(*names: str) -> list[dict[str, str]]:
    return [dict(zip(("group", "kind"), name.split("/"), strict=True)) for name in names]


def test_more_equivalences_may_be_given() -> None:
    equivalences = Equivalences([kinds("a.io/X", "b.io/Y"), kinds("apps/Deployment", "c.io/Deploy")])
    assert set(equivalences.others("a.io", "X")) == {("b.io", "Y")}
    assert set(equivalences.others("extensions", "Deployment")) == {("apps", "Deployment"), ("c.io", "Deploy")}
    assert set(equivalences.others("", "ConfigMap")) == set()


def test_a_list_joins_the_first_set_found_and_does_not_merge_others() -> None:
    equivalences = Equivalences([kinds("a/A", "b/B"), kinds("c/C", "d/D"), kinds("b/B", "c/C")])
    assert set(equivalences.others("c", "C")) == {("a", "A"), ("b", "B")}
    assert set(equivalences.others("d", "D")) == {("c", "C")}
    assert set(equivalences.others("a", "A")) == {("b", "B"), ("c", "C")}


def test_everything_that_was_ever_announced_is_listed() -> None:
    done, pending = ref("v1", "ConfigMap", "a"), ref("v1", "ConfigMap", "b")
    assert all_listed({"status": {"resources": [done], "pendingResources": [pending]}}) == [done, pending]
    assert all_listed({}) == []


def test_in_short_only_the_label_of_all_objects_is_left_out() -> None:
    managed_by = {"resources.gardener.cloud/managed-by": "gardener"}
    full = [ref("v1", "Secret", labels=managed_by), ref("v1", "Secret", labels={"a": "b", **managed_by})]
    assert shortened(full) == [ref("v1", "Secret"), ref("v1", "Secret", labels={"a": "b"})]
