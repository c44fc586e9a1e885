"""A ManagedSeedSet of a test's own, with what its replicas refer to, and who sees to them.

place = SeedSetPlace(garden, client)
place.make(2)
await place.gardenlets.work()
"""

from collections.abc import Awaitable, Callable
from typing import Any

from devcluster.garden.gardenlets import Gardenlets
from gardener.api.garden import MANAGED_SEED_SETS, SHOOTS
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_objects import garden_object
from kit.garden_shoots import ShootPlace
from kube.objects import Object, spec
from kube.resources import EVENTS
from kube.runtime.client import Client, Selection


class SeedSetPlace:
    """The set is called as the place, so its replicas are `<name>-<number>`."""

    def __init__(self, garden: Garden, client: Client) -> None:
        self.base = ShootPlace(garden, is_garden=True)
        self.name = self.base.name
        self.client = client
        self.gardenlets = Gardenlets(client, f"{self.name}-")

    def templates(self, *, capacity: int = 0, volumes: int = 0, **shoot_spec: Any) -> Object:
        """Args: capacity, volumes: Shoots, and volumes, for which each Seed has room; 0: what is usual."""
        shoot = garden_object(SHOOTS)["spec"] | {"secretBindingName": self.name}
        shoot["cloudProfile"]["name"] = shoot["networking"]["type"] = shoot["provider"]["type"] = self.name
        shoot["networking"] |= {"pods": "100.64.0.0/11", "services": "100.104.0.0/13"}
        shoot["kubernetes"]["verticalPodAutoscaler"] = {"enabled": True}
        own = {"type": self.name, "primary": True, "secretName": self.name}
        shoot["dns"] = {"domain": f"replica-name.{self.name}.example.com", "providers": [own]}
        del shoot["provider"]["workers"][0]["machine"]["image"]
        seed: Object = {"ingress": {"domain": f"ingress.replica-name.{self.name}.example.com"}}
        seed["dns"] = {"provider": {"type": self.name, "secretRef": {"name": self.name, "namespace": "garden"}}}
        meta = {"labels": {"set": self.name}}
        room = {name: str(amount) for name, amount in (("shoots", capacity), ("volumes", volumes)) if amount}
        config = {
            "apiVersion": "gardenlet.config.gardener.cloud/v1alpha1",
            "kind": "GardenletConfiguration",
            "seedConfig": {"metadata": meta, "spec": seed},
            **({"resources": {"capacity": room}} if room else {}),
        }
        return {
            "template": {"metadata": meta, "spec": {"gardenlet": {"config": config}}},
            "shootTemplate": {"metadata": {**meta, "annotations": {"note": "n"}}, "spec": shoot | shoot_spec},
        }

    def make(
        self, replicas: int, *, capacity: int = 0, volumes: int = 0, shoot_spec: Object | None = None, **fields: Any
    ) -> None:
        fields |= {"replicas": replicas, "selector": {"matchLabels": {"set": self.name}}}
        templates = self.templates(capacity=capacity, volumes=volumes, **(shoot_spec or {}))
        self.base.create(MANAGED_SEED_SETS, self.name, spec=templates | fields)

    def change(self, **fields: Any) -> None:
        self.base.patch(MANAGED_SEED_SETS, self.name, {"spec": fields})

    def with_workers(self, maximum: int) -> Object:
        """A patch of the template of Shoots."""
        provider = spec(self.templates()["shootTemplate"])["provider"]
        return {"spec": {"provider": {"workers": [provider["workers"][0] | {"maximum": maximum}]}}}

    def status(self) -> Object:
        status: Object = self.base.get(MANAGED_SEED_SETS, self.name).get("status") or {}
        return status

    def waits(self) -> str:
        """`<number> <reason>`, and retries if there are any; empty: for nothing."""
        pending = self.status().get("pendingReplica") or {}
        words = (pending.get("name", "").removeprefix(f"{self.name}-"), pending.get("reason"), pending.get("retries"))
        return " ".join(str(word) for word in words if word)

    def is_ready(self, count: int) -> bool:
        status = self.status()
        return (status.get("replicas"), status.get("readyReplicas", 0), self.waits()) == (count, count, "")

    async def numbers(self) -> set[int]:
        """Of the replicas that there are."""
        selection = Selection("garden", f"set={self.name}")
        pages = self.client.pages(SHOOTS, selection)
        return {int(shoot["metadata"]["name"].rpartition("-")[2]) async for page in pages for shoot in page}

    def replica(self, number: int) -> str:
        return f"{self.name}-{number}"

    async def events(self) -> dict[str, int]:
        """`reason: message` and how often."""
        selection = Selection("garden", field_selector=f"involvedObject.name={self.name}")
        pages = self.client.pages(EVENTS, selection)
        return {
            f"{event['reason']}: {event['message'].replace(self.name, 'X')}": event["count"]
            async for page in pages
            for event in page
        }

    async def working(self, found: Callable[[], bool | Awaitable[bool]], what: str) -> None:
        """Until it is so, while the gardenlets work."""

        async def is_so() -> bool:
            await self.gardenlets.work()
            result = found()
            return result if isinstance(result, bool) else await result

        await soon(is_so, what)

    async def ready(self, count: int) -> None:
        await self.working(lambda: self.is_ready(count), f"{count} replicas to be ready")
