"""What a plan keeps in memory: of an object little more than its compressed manifest; and what is too large for it."""

import orjson
import pytest

from agent.resource_manager.managed_resource.plans import PlanningBudget, make_plan, size_of
from gardener.managed_resource.decode import LARGEST_OBJECT
from gardener.managed_resource.plan import Basis, Plan
from kit import objects
from kit.objects import Served, obj
from kube.objects import Key, Object
from kube.resources import CONFIG_MAPS, Resource

STATEFUL_SETS = Resource("apps", "v1", "StatefulSet", "statefulsets", namespaced=True)


def config_map(name: str, text: str, **marks: str) -> Object:
    return objects.config_map(f"n/{name}", data={"text": text}, **({"labels": marks} if marks else {}))


async def plan_of(*objects: Object, **injected: str) -> Plan:
    data = [(Key("n", "s"), {f"{position}.yaml": orjson.dumps(obj) for position, obj in enumerate(objects)})]
    return await make_plan(
        basis=Basis(tuple(injected.items()), ()),
        data=data,
        size=await size_of(data),
        budget=PlanningBudget(),
        discovery=Served(CONFIG_MAPS, STATEFUL_SETS),
        managed_by="gardener",
        only_workloads=False,
    )


@pytest.mark.parametrize(
    "texts",
    [
        {"small": "x", "usual": "text " * 500, "large": "text " * 5000},
        {str(number): "text " * 5000 for number in range(5)},  # so much is decoded in a thread
    ],
)
async def test_manifests_come_back_as_they_were(texts: dict[str, str]) -> None:
    plan = await plan_of(*(config_map(name, text) for name, text in texts.items()))
    assert {wanted.key.name: wanted.object()["data"]["text"] for wanted in plan.wanted()} == texts
    for wanted in plan.wanted():
        text = texts[wanted.key.name]
        assert len(wanted.manifest) < max(len(text) / 4, 200)
        assert wanted.size > len(text)
    assert plan.size < sum(max(len(text) / 4, 300) for text in texts.values())


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


# --- what is too large


async def test_an_object_that_no_api_server_accepts_is_a_problem_of_its_own_and_is_not_kept() -> None:
    plan = await plan_of(config_map("a", "x"), config_map("large", "x" * LARGEST_OBJECT), config_map("z", "x"))
    problems = {wanted.key.name: wanted.problem for wanted in plan.wanted()}
    assert (problems["a"], problems["z"]) == ("", "")
    assert problems["large"].startswith('error during apply of object "v1/ConfigMap/n/large": the object has 31')
    assert problems["large"].endswith("divide it; it is in '1.yaml' of secret 'n/s'")
    assert [reference["name"] for reference in plan.references] == ["a", "large", "z"]
    assert plan.size < 1000


async def test_labels_that_are_injected_do_not_make_more_of_the_objects_than_there_may_be() -> None:
    objects = [config_map(str(number), "x") for number in range(100)]
    plan = await plan_of(*objects, long="x" * (1 << 20))
    refused = [wanted.problem for wanted in plan.wanted() if wanted.problem]
    assert len(refused) == 37
    assert all("the objects have more than 67108864 bytes together; use several ManagedResources" in p for p in refused)


async def test_labels_are_not_injected_into_templates_without_number() -> None:
    stateful_set = obj("apps/v1 StatefulSet", "n/s", spec={"volumeClaimTemplates": [{}] * 1000})
    plan = await plan_of(stateful_set, long="x" * 10_000)
    [wanted] = plan.wanted()
    assert "too many spec.volumeClaimTemplates" in wanted.problem
