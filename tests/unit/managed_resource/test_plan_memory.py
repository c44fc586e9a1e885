"""What a plan keeps in memory: of an object little more than its compressed manifest."""

import orjson

from agent.managed_resource.plan import LARGE, Basis, Plan, make_plan
from kube.objects import Key, Object
from kube.resources import CONFIG_MAPS, Resource


class Served:
    """Discovery of a cluster that serves ConfigMaps."""

    async def find(self, _api_version: str, _kind: str) -> Resource:
        return CONFIG_MAPS


def config_map(name: str, text: str, **marks: str) -> Object:
    meta = {"name": name, "namespace": "n", **({"labels": marks} if marks else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"text": text}}


async def plan_of(*objects: Object) -> Plan:
    data = {f"{position}.yaml": orjson.dumps(obj) for position, obj in enumerate(objects)}
    return await make_plan(
        basis=Basis((), ()),
        data=[(Key("n", "s"), data)],
        discovery=Served(),  # type: ignore[arg-type]
        managed_by="gardener",
        only_workloads=False,
    )


async def test_manifests_come_back_as_they_were() -> None:
    texts = {"small": "x", "usual": "text " * 500, "large": "text " * 5000}
    plan = await plan_of(*(config_map(name, text) for name, text in texts.items()))
    kept = {wanted.key.name: wanted for wanted in plan.wanted()}
    assert {name: wanted.object()["data"]["text"] for name, wanted in kept.items()} == texts
    assert len(kept["usual"].manifest) < len(texts["usual"]) / 4
    assert len(kept["large"].manifest) >= LARGE


async def test_names_references_and_labels_are_kept_once() -> None:
    first, again = await plan_of(config_map("a", "x"), config_map("b", "x")), await plan_of(config_map("a", "y"))
    a, b = (wanted.reference for wanted in first.wanted())
    assert all(kept is wanted.reference for kept, wanted in zip(first.references, first.wanted(), strict=True))
    assert a["labels"] is b["labels"]
    assert first.wanted()[0].name is again.wanted()[0].name


async def test_labels_of_an_object_of_its_own_are_not_given_to_others() -> None:
    plan = await plan_of(config_map("a", "x", color="red"), config_map("b", "x"))
    labels = [wanted.reference["labels"] for wanted in plan.wanted()]
    managed_by = {"resources.gardener.cloud/managed-by": "gardener"}
    assert labels == [{"color": "red", **managed_by}, managed_by]
