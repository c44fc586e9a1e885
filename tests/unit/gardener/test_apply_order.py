"""In which order and in which groups objects are applied."""

from gardener.managed_resource.order import in_stages
from kube.objects import Object


def obj(kind: str, name: str = "x", namespace: str = "ns") -> Object:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}}


def stages(*objects: Object) -> list[list[str]]:
    return [[f"{o['kind']}/{o['metadata']['name']}" for o in stage] for stage in in_stages(objects, lambda o: o)]


def test_kinds_come_in_their_order_and_other_kinds_last_by_name() -> None:
    shuffled = [
        "Zebra",
        "ValidatingWebhookConfiguration",
        "Ant",
        "Ingress",
        "Deployment",
        "Service",
        "Secret",
        "Namespace",
    ]
    assert stages(*(obj(kind) for kind in shuffled)) == [
        [f"{kind}/x"]
        for kind in ("Namespace", "Secret", "Service", "Deployment", "Ingress", "ValidatingWebhookConfiguration", "Ant", "Zebra")
    ]  # fmt: skip


def test_objects_of_a_kind_are_one_stage_sorted_by_name() -> None:
    assert stages(obj("ConfigMap", "b"), obj("Secret", "a"), obj("ConfigMap", "a")) == [
        ["Secret/a"],
        ["ConfigMap/a", "ConfigMap/b"],
    ]


def test_the_order_of_equal_names_stays() -> None:
    (stage,) = in_stages([obj("ConfigMap", "a", "z"), obj("ConfigMap", "a", "b")], lambda o: o)
    assert [o["metadata"]["namespace"] for o in stage] == ["z", "b"]


def test_an_object_without_kind_and_name_has_its_place_too() -> None:
    assert len(in_stages([{}, obj("Ant")], lambda o: o)) == 2


def test_nothing_makes_no_stages() -> None:
    assert in_stages([], lambda o: o) == []
