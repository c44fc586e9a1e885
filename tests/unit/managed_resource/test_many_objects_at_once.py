"""A ManagedResource with thousands of objects does not hold the event loop."""

import asyncio
import gc
import time
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from agent.resource_manager.managed_resource.application import ApplyOptions
from agent.resource_manager.managed_resource.apply import Applier
from agent.resource_manager.managed_resource.rules.change_set import ChangeSet
from agent.resource_manager.managed_resource.rules.permissions import Identity, Owner
from agent.resource_manager.managed_resource.rules.repairs import Repairs
from gardener.managed_resource.autoscaling import Scaled
from gardener.managed_resource.equivalences import Equivalences
from gardener.managed_resource.ignored_fields import IgnoredFields
from gardener.managed_resource.merge import Overwrite
from gardener.managed_resource.plan import Basis, Plan, PlannedObject, unrestricted
from kube.objects import Key
from kube.packing import packed
from kube.write_mode import FieldValidation

OWNER = Owner(Key("ns", "mr"), "ns/mr", Identity(), unrestricted)
NOTHING: Any = None
MANIFEST = packed(orjson.dumps({"apiVersion": "v1", "kind": "Secret", "stringData": {"k": "password\n" * 200}}))


def failing(number: int) -> PlannedObject:
    """Nothing is requested of it; to describe its problem without its values takes a while."""
    return PlannedObject(
        name=f"/Secret/ns/{number}",
        text=f"v1/Secret/ns/{number}",
        key=Key("ns", str(number)),
        resource=None,
        problem=f"problem {number} of password",
        reference={},
        size=2,
        manifest=MANIFEST,
        digest=b"",
        is_ignored=False,
        secret="s",
    )


def plan(*wanted: PlannedObject) -> Plan:
    return Plan(
        basis=Basis((), ()),
        stages=(wanted,),
        restricted={},
        references=(),
        released=(),
        checksum="",
        decode_errors=(),
        unresolved=frozenset(),
        size=0,
    )


@pytest.fixture
def applier() -> Applier:
    repairs = Repairs(longest=1)
    return Applier(live=NOTHING, ownership=NOTHING, autoscalers=NOTHING, repairs=repairs, always_update=None)


def options() -> ApplyOptions:
    return ApplyOptions(
        owner=OWNER,
        client=NOTHING,
        overwrite=Overwrite(),
        equivalences=Equivalences(),
        scaled=Scaled(),
        adopt="",
        listed=(),
        previous={},
        is_settled=False,
        always_update=False,
        applied={},
        warnings={},
        ignored_fields=IgnoredFields(),
        field_validation=FieldValidation.WARN,
    )


async def test_errors_are_reported_in_the_order_of_the_objects(applier: Applier) -> None:
    changes = ChangeSet(owner=OWNER.name)
    await applier.apply(plan(*map(failing, range(30))), options(), changes, asyncio.Semaphore(10))
    assert changes.errors == [f"problem {number} of [redacted]" for number in range(30)]


@pytest.fixture
def no_garbage_collection() -> Iterator[None]:
    """That of what other tests have left may take longer than what is measured."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_garbage_collection")
async def test_others_have_their_turns_while_thousands_of_objects_are_worked_on(applier: Applier) -> None:
    """CPU time counts, so it does not matter how busy the machine is."""
    held: list[float] = []

    async def others() -> None:
        while True:
            before = time.thread_time()
            await asyncio.sleep(0)
            held.append(time.thread_time() - before)

    task = asyncio.create_task(others())
    await asyncio.sleep(0)
    changes = ChangeSet(owner=OWNER.name)
    await applier.apply(plan(*map(failing, range(3000))), options(), changes, asyncio.Semaphore(10))
    task.cancel()
    assert len(changes.errors) == 3000
    assert max(held) < sum(held) / 4
