"""Bastions for Shoots of a Seed, with a simulated extension."""

import base64
from collections.abc import Iterator

import pytest

from agent.gardenlet.extensions import bastion as bastion_module
from agent.gardenlet.extensions.bastion import READY, declare
from agent.gardenlet.shoot.main.tasks import infrastructure
from gardener import keys
from gardener.api.extensions import BASTIONS as EXTENSION_BASTIONS
from gardener.api.garden import BASTIONS, SHOOTS
from kit.controllers import cluster_of
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_controllers import looked_at
from kit.gardenlet_mirrors import GARDEN, MirrorPlace
from kit.shoot_components import bare_operation
from kit.world import WRITES, connected
from kube.objects import Object, annotations, condition, finalizers, is_deleting
from kube.paths import at

pytestmark = pytest.mark.timeout(600)

ERROR = {"description": "cloud: quota exceeded", "codes": ["ERR_INFRA_QUOTA_EXCEEDED"]}


class BastionPlace(MirrorPlace):
    def found(self) -> Object:
        return self.find(BASTIONS, "b", namespace=self.place.namespace) or {}

    def extension(self) -> Object:
        return self.find(EXTENSION_BASTIONS, "b", namespace=self.technical_id) or {}

    def change(self, body: Object) -> Object:
        return self.garden.patch(BASTIONS, "b", body, namespace=self.place.namespace)

    def delete(self) -> None:
        self.garden.delete(BASTIONS, "b", namespace=self.place.namespace)

    async def ready(self, status: str = "True") -> Object:
        """The Bastion, once it reports this."""

        def found() -> Object | None:
            live = self.found()
            return live if (condition(live, READY) or {}).get("status") == status else None

        return await soon(found, f"it to be ready: {status}")  # type: ignore[no-any-return]

    async def made(self, address: str = "10.0.0.1") -> Object:
        await self.requested(EXTENSION_BASTIONS, "b", namespace=self.technical_id)
        self.answered(ingress={"ip": address})
        return await self.ready()

    def answered(self, **options: Object | str) -> None:
        self.answer(EXTENSION_BASTIONS, "b", namespace=self.technical_id, **options)  # type: ignore[arg-type]

    async def leaving(self) -> Object:
        return await self.deleting(EXTENSION_BASTIONS, "b", namespace=self.technical_id)

    def released(self) -> None:
        self.let_go(EXTENSION_BASTIONS, "b", namespace=self.technical_id)

    async def gone(self) -> None:
        await soon(lambda: not self.found(), "it to be gone")


@pytest.fixture
def place(garden: Garden, monkeypatch: pytest.MonkeyPatch) -> Iterator[BastionPlace]:
    monkeypatch.setattr(bastion_module, "_GOES_SECONDS", 0.2)
    place = BastionPlace(garden)
    yield place
    place.remove()
    place.place.remove()


async def test_a_bastion_is_made_and_then_left_alone(place: BastionPlace) -> None:
    audit = place.garden.cluster.audit()
    async with place.gardenlet(declare) as (loop,):
        place.bastion()
        bastion = await place.made()
        assert bastion["status"]["ingress"] == {"ip": "10.0.0.1"}
        await looked_at(loop, BASTIONS, bastion)
        since = audit.mark()
        touched = place.change({"metadata": {"labels": {"seen": "1"}}})
        await looked_at(loop, BASTIONS, touched)
        # For another Shoot there is one of the same name.
        place.create(EXTENSION_BASTIONS, "b", namespace=GARDEN, spec=place.extension()["spec"])
        other = place.answer(EXTENSION_BASTIONS, "b", namespace=GARDEN)
        await looked_at(loop, EXTENSION_BASTIONS, other)
        assert place.calls(audit, since) == []
    since = audit.mark()
    async with place.gardenlet(declare) as (loop,):
        await looked_at(loop, BASTIONS, touched)
    assert place.calls(audit, since, *WRITES) == []
    audit.close()


async def test_who_may_come_in_is_changed_in_the_seed_and_requested(place: BastionPlace) -> None:
    async with place.gardenlet(declare):
        place.bastion()
        await place.made()
        place.change({"spec": {"ingress": [{"ipBlock": {"cidr": "192.0.2.0/24"}}]}})
        requested = await place.requested(EXTENSION_BASTIONS, "b", namespace=place.technical_id)
        assert at(requested, "spec", "ingress") == [{"ipBlock": {"cidr": "192.0.2.0/24"}}]
        # The question got lost.
        meta = {"metadata": {"annotations": {keys.OPERATION: None}}}
        place.garden.patch(EXTENSION_BASTIONS, "b", meta, namespace=place.technical_id)
    async with place.gardenlet(declare):
        again = await place.requested(EXTENSION_BASTIONS, "b", namespace=place.technical_id)
        assert annotations(again)[keys.TIMESTAMP] > annotations(requested)[keys.TIMESTAMP]


async def test_a_host_with_the_script_of_another_release_is_kept_and_changed(place: BastionPlace) -> None:
    script = base64.b64encode(b"#!/bin/sh").decode()
    bastion = place.bastion()
    ingress = [{"ipBlock": {"cidr": "192.0.2.0/24"}}]
    spec = {"type": bastion["spec"]["providerType"], "userData": script, "ingress": ingress}
    place.create(EXTENSION_BASTIONS, "b", namespace=place.technical_id, spec=spec)
    async with place.gardenlet(declare):
        requested = await place.requested(EXTENSION_BASTIONS, "b", namespace=place.technical_id)
        assert requested["spec"]["userData"] == script
        assert requested["spec"]["ingress"] != spec["ingress"]


async def test_what_an_extension_fails_at_is_reported_until_it_succeeds(place: BastionPlace) -> None:
    async with place.gardenlet(declare):
        place.bastion()
        await place.requested(EXTENSION_BASTIONS, "b", namespace=place.technical_id)
        place.answered(state="Error", error=ERROR)

        def is_said() -> bool:
            return "quota exceeded" in str((condition(place.found(), READY) or {}).get("message"))

        await soon(is_said, "the error to be reported")
        place.answered(ingress={"hostname": "bastion.example.com"})
        bastion = await place.ready()
        assert bastion["status"]["ingress"] == {"hostname": "bastion.example.com"}


async def test_a_bastion_stays_until_its_extension_has_let_go(place: BastionPlace) -> None:
    async with place.gardenlet(declare):
        place.bastion()
        await place.made()
        place.delete()
        await place.leaving()
        assert (await place.ready("False"))["metadata"]["finalizers"] == [keys.GARDENER_FINALIZER]
        place.answered(operation="Delete", state="Error", error=ERROR)
        assert keys.CONFIRM_FORCE_DELETION not in annotations(place.extension())
        place.change({"metadata": {"annotations": {keys.CONFIRM_FORCE_DELETION: "true"}}})
        await soon(lambda: keys.CONFIRM_FORCE_DELETION in annotations(place.extension()), "force to be passed on")
        assert finalizers(place.found()) == [keys.GARDENER_FINALIZER]
        place.released()
        await place.gone()
    assert place.extension() == {}


async def test_a_bastion_that_is_needed_again_is_made_again(place: BastionPlace) -> None:
    async with place.gardenlet(declare):
        place.bastion()
        await place.made()
        place.garden.delete(EXTENSION_BASTIONS, "b", namespace=place.technical_id)
        place.change({"spec": {"ingress": [{"ipBlock": {"cidr": "192.0.2.0/24"}}]}})
        await place.leaving()
        place.released()
        assert not is_deleting(await place.requested(EXTENSION_BASTIONS, "b", namespace=place.technical_id))


async def test_without_ssh_they_are_deleted_by_the_flow_of_the_shoot(place: BastionPlace) -> None:
    """With the rights of a gardenlet."""
    place.bastion()
    shoot = place.garden.get(SHOOTS, "s", namespace=place.place.namespace)
    async with connected(place.garden.gardenlet_kubeconfig(place.name), "gardenlet/test") as client:
        operation = bare_operation(garden=cluster_of(client), shoot=shoot)
        await infrastructure.remove_bastions(operation)
        await place.gone()
        await infrastructure.remove_bastions(operation)
