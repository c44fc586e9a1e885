"""A ManagedSeedSet of a test's own, with what its replicas refer to, and who sees to them.

place = SeedSetPlace(garden, client)
place.make(2)
await place.gardenlets.work()
"""

from typing import Any

from gardener.garden.resources import MANAGED_SEED_SETS, SHOOTS
from kit.garden import Garden
from kit.garden_actors import Gardenlets
from kit.garden_objects import garden_object
from kit.garden_shoots import ShootPlace
from kube.client import Client, Selection
from kube.objects import Object, spec


class SeedSetPlace:
    """The set is called as the place, so its replicas are `<name>-<number>`."""

    def __init__(self, garden: Garden, client: Client) -> None:
        self.base = ShootPlace(garden, is_garden=True)
        self.name = self.base.name
        self.client = client
        self.gardenlets = Gardenlets(client, f"{self.name}-")

    def templates(self, **shoot_spec: Any) -> Object:
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
        config = {
            "apiVersion": "gardenlet.config.gardener.cloud/v1alpha1",
            "kind": "GardenletConfiguration",
            "seedConfig": {"metadata": meta, "spec": seed},
        }
        return {
            "template": {"metadata": meta, "spec": {"gardenlet": {"config": config}}},
            "shootTemplate": {"metadata": {**meta, "annotations": {"note": "n"}}, "spec": shoot | shoot_spec},
        }

    def make(self, replicas: int, *, shoot_spec: Object | None = None, **fields: Any) -> None:
        fields |= {"replicas": replicas, "selector": {"matchLabels": {"set": self.name}}}
        self.base.create(MANAGED_SEED_SETS, self.name, spec=self.templates(**(shoot_spec or {})) | fields)

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
