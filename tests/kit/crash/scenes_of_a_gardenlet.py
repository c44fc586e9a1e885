"""What controllers of the gardenlet do in a seed, which is the garden as well."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, ClassVar

from agent.gardenlet.seed.care.controller import declare as seed_care
from agent.gardenlet.seed.network_policy.controller import declare as network_policies
from agent.gardenlet.seed.vpa_eviction_requirements.controller import declare as eviction_requirements
from agent.gardenlet.seed.vpa_eviction_requirements.rules.requirements import NEVER, ONLY_MORE
from agent.gardenlet.tokens.workload_identities.controller import declare as identity_tokens
from devcluster.cluster import Cluster
from gardener import keys
from gardener.api.garden import AUTHENTICATION_API, SEEDS, WORKLOAD_IDENTITIES
from gardener.api.kinds import MANAGED_RESOURCES, VERTICAL_POD_AUTOSCALERS
from gardener.network_policies import DENY_ALL, NAMES, TO_DNS
from kit.crash.sweep import Scene, crossing, scenes_of
from kit.garden import Garden
from kit.garden_shoots import ShootPlace
from kit.gardenlet_controllers import Declare, gardenlet_at_work, gardenlet_config, gardenlet_context
from kit.objects import decoded, encoded, obj
from kit.seed_kinds import install_seed_kinds
from kube.objects import Object, annotations, condition, key, metadata, spec
from kube.paths import at
from kube.resources import ENDPOINTS, NAMESPACES, NETWORK_POLICIES, SECRETS
from kube.runtime.client import Client

_FOREIGN: Object = {"podSelector": {}, "policyTypes": ["Ingress"]}


class GardenletScene(Scene):
    declare: ClassVar[Declare]

    def __init__(self, cluster: Cluster, admin: Client) -> None:
        super().__init__(cluster, admin)
        install_seed_kinds(cluster)

    @asynccontextmanager
    async def at_work(self, client: Client) -> AsyncIterator[Callable[[], bool]]:
        namespaces: Sequence[str] = () if self.everywhere else (self.mark,)
        config = gardenlet_config(self.mark)
        context = await gardenlet_context(garden=client, seed=client, config=config, namespaces=namespaces)
        async with gardenlet_at_work(context, type(self).declare) as loops:
            for loop in loops:
                loop.queue._max_backoff = min(loop.queue._max_backoff, self.longest_back_off)
            yield lambda: all(loop.queue.is_idle for loop in loops)


class NamespacesGetPolicies(GardenletScene):
    """One gets them, in one a policy was changed, and one is not to have them any more."""

    crosses = crossing(*(f"{verb} networkpolicies.networking.k8s.io" for verb in ("create", "patch", "delete")))
    declare = network_policies
    everywhere = True

    async def prepare(self) -> None:
        if await self.find(ENDPOINTS, "kubernetes", namespace="default") is None:
            subset = {"addresses": [{"ip": "10.11.12.13"}], "ports": [{"port": 443}]}
            await self.create(obj(ENDPOINTS, "kubernetes", namespace="default", subsets=[subset]), ENDPOINTS)
        if await self.find(NAMESPACES, "garden") is None:
            await self.create(obj(NAMESPACES, "garden"))
        marked = {keys.GARDENER_DESCRIPTION: "changed"}
        for namespace, labels in ((self.mark, {keys.ROLE: "shoot"}), (f"{self.mark}-plain", {})):
            await self.create(obj(NAMESPACES, namespace, labels=labels))
            policy = obj(NETWORK_POLICIES, DENY_ALL, namespace=namespace, annotations=marked, spec=_FOREIGN)
            await self.create(policy)
        await self.make_foreign(obj(NETWORK_POLICIES, TO_DNS, namespace=f"{self.mark}-plain", spec=_FOREIGN))
        await self.make_foreign(obj(NETWORK_POLICIES, "mine", namespace=self.mark, spec=_FOREIGN))

    async def problem(self) -> str:
        own = {metadata(each)["name"]: each for each in await self.list(NETWORK_POLICIES)}
        plain = [metadata(each)["name"] for each in await self.list(NETWORK_POLICIES, namespace=f"{self.mark}-plain")]
        if set(own) != {*NAMES, "mine"} or plain != [TO_DNS]:
            return f"there are {sorted(own)} and {plain}"
        return "the changed one is not restored" if spec(own[DENY_ALL]) == _FOREIGN else ""

    async def state(self) -> Any:
        return await self.snapshot(NETWORK_POLICIES, namespaces=(self.mark, f"{self.mark}-plain"))

    async def clean_up(self) -> None:
        """The next process would report these again."""
        for kind, made in self.foreign:
            await self.remove(kind, key(made).name, namespace=key(made).namespace)


class PodsMayNeverGetLess(GardenletScene):
    crosses = crossing("patch verticalpodautoscalers.autoscaling.k8s.io")
    declare = eviction_requirements

    async def prepare(self) -> None:
        await self.make_namespace()
        for name, managed in (("v", keys.EVICTION_REQUIREMENTS_MANAGED), ("mine", "mine")):
            made = obj(
                VERTICAL_POD_AUTOSCALERS,
                name,
                namespace=self.mark,
                labels={keys.EVICTION_REQUIREMENTS: managed},
                annotations={keys.DOWNSCALE_RESTRICTION: NEVER},
                spec={"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}},
            )
            if name == "v":
                await self.create(made, VERTICAL_POD_AUTOSCALERS)
            else:
                await self.make_foreign(made, VERTICAL_POD_AUTOSCALERS)

    async def problem(self) -> str:
        found = await self.get(VERTICAL_POD_AUTOSCALERS, "v")
        requirements = at(found, "spec", "updatePolicy", "evictionRequirements")
        return "" if requirements == ONLY_MORE else f"it requires {requirements}"

    async def state(self) -> Any:
        return await self.snapshot(VERTICAL_POD_AUTOSCALERS)


class IdentityHasAToken(GardenletScene):
    """In a Secret that another client has filled, and that another one is beside."""

    spare = 1
    """A token that was lost is requested once more."""
    crosses = crossing(f"create workloadidentities/token.{AUTHENTICATION_API.partition('/')[0]}", "patch secrets")
    declare = identity_tokens

    async def prepare(self) -> None:
        await self.make_namespace()
        identity = {"audiences": ["cloud"], "targetSystem": {"type": "local"}}
        await self.create(obj(WORKLOAD_IDENTITIES, "wi", namespace=self.mark, spec=identity), WORKLOAD_IDENTITIES)
        named = {keys.WORKLOAD_IDENTITY_NAME: "wi", keys.WORKLOAD_IDENTITY_NAMESPACE: self.mark}
        asks = {keys.SECURITY_PURPOSE: keys.PURPOSE_WORKLOAD_IDENTITY_TOKEN_REQUESTOR}
        filled = encoded({"config": "c"})
        await self.create(obj(SECRETS, "t", namespace=self.mark, labels=asks, annotations=named, data=filled))
        await self.make_foreign(obj(SECRETS, "other", namespace=self.mark, annotations=named, data=filled))

    async def problem(self) -> str:
        return "" if decoded(await self.get(SECRETS, "t")).get("token") else "there is no token"

    async def state(self) -> Any:
        secret = await self.get(SECRETS, "t")
        is_timed = keys.WORKLOAD_IDENTITY_RENEW_TIMESTAMP in annotations(secret)
        return {"keys": sorted(secret["data"]), "config": decoded(secret)["config"], "timed": is_timed}


class SeedIsNotHealthy(GardenletScene):
    """A component of it is not."""

    crosses = crossing("patch seeds/status.core.gardener.cloud")
    declare = seed_care
    everywhere = True

    def __init__(self, cluster: Cluster, admin: Client) -> None:
        super().__init__(cluster, admin)
        self.place = ShootPlace(Garden(cluster))
        self.mark = self.place.name

    async def prepare(self) -> None:
        self.place.seed()
        if await self.find(NAMESPACES, "garden") is None:
            await self.create(obj(NAMESPACES, "garden"))
        managed = obj(MANAGED_RESOURCES, self.mark, namespace="garden", spec={"class": "seed", "secretRefs": []})
        await self.create(managed, MANAGED_RESOURCES)
        time = "2026-01-01T00:00:00Z"
        found = {"type": "ResourcesApplied", "status": "False", "reason": "ApplyFailed", "message": "m"}
        status = {
            "observedGeneration": 1,
            "conditions": [{**found, "lastTransitionTime": time, "lastUpdateTime": time}],
        }
        await self.patch(MANAGED_RESOURCES, self.mark, {"status": status}, namespace="garden", subresource="status")

    def reported(self) -> tuple[Any, ...]:
        found = condition(self.place.get(SEEDS, self.mark), "SeedSystemComponentsHealthy") or {}
        return found.get("status"), found.get("reason"), found.get("message")

    async def problem(self) -> str:
        return "" if self.reported() == ("False", "ApplyFailed", "m") else f"the Seed says {self.reported()}"

    async def state(self) -> Any:
        return self.reported()

    async def clean_up(self) -> None:
        await self.remove(MANAGED_RESOURCES, self.mark, namespace="garden")
        self.place.remove()


SCENES = scenes_of(__name__)
