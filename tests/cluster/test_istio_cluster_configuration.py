"""The controller `istio-cluster-configuration` on a real API server, with Istio's kinds installed while it runs."""

from agent.resource_manager.istio_cluster_configuration.controller import declare
from agent.resource_manager.istio_cluster_configuration.rules import EXPORT_TO, NAME, SUFFIX
from gardener import keys
from gardener.api import kinds
from kit.controllers import run_controller
from kit.eventually import no_problem
from kit.kinds import definition, kinds_are_served
from kit.objects import obj
from kit.world import World
from kube.objects import Object, labels, uid
from kube.resources import SERVICES
from kube.runtime.client import Client

KINDS = (kinds.DESTINATION_RULES, kinds.ENVOY_FILTERS)
HTTPS = {"port": 443, "name": "https"}


class IstioWorld(World):
    def __init__(self, client: Client, namespace: str) -> None:
        super().__init__(client, namespace)
        self.gateways = f"{namespace}-gateways"

    async def filter(self) -> Object | None:
        return await self.find("EnvoyFilter", f"{self.namespace}{SUFFIX}", namespace=self.gateways)

    async def until_ports_are(self, *ports: int) -> Object:
        wanted = [f"outbound|{port}||svc.{self.namespace}.svc.cluster.local" for port in ports]

        async def problem() -> str:
            patches = (await self.filter() or {}).get("spec", {}).get("configPatches", [])
            clusters = [patch["match"]["cluster"]["name"] for patch in patches]
            return "" if clusters == wanted else f"{clusters} instead of {wanted}"

        await no_problem(problem)
        return await self.filter() or {}


async def test_envoy_filters_follow_destination_rules_once_istio_is_there(
    client: Client, admin: Client, namespace: str
) -> None:
    world = IstioWorld(admin, namespace)
    gateways = world.gateways
    async with run_controller(declare, client) as loop:
        for kind in KINDS:
            await world.create(definition(kind))
        await world.create(obj("Namespace", gateways, labels={"gardener.cloud/role": "istio-ingress"}))
        try:
            await kinds_are_served(admin, *KINDS)
            loop.kinds_changed("networking.istio.io")
            svc = obj(SERVICES, "svc", annotations={EXPORT_TO: gateways}, spec={"ports": [HTTPS]})
            await world.create(svc)
            exported = {"host": f"svc.{namespace}.svc.cluster.local", "exportTo": ["*"]}
            await world.create(obj(kinds.DESTINATION_RULES, "r", spec=exported))
            made = await world.until_ports_are(443)
            assert labels(made) == {keys.MANAGED_BY: NAME}
            assert made["metadata"]["ownerReferences"][0]["name"] == namespace

            await world.patch("Service", "svc", {"spec": {"ports": [HTTPS, {"port": 80, "name": "http"}]}})
            await world.until_ports_are(443, 80)

            changed = {"metadata": {"annotations": {"foreign": "x"}}, "spec": {"configPatches": []}}
            await world.patch("EnvoyFilter", f"{namespace}{SUFFIX}", changed, namespace=gateways)
            again = await world.until_ports_are(443, 80)
            assert uid(again) == uid(made)
            assert again["metadata"]["annotations"] == {"foreign": "x"}

            await world.patch("Namespace", gateways, {"metadata": {"labels": {"gardener.cloud/role": None}}})
            await world.until_gone("EnvoyFilter", f"{namespace}{SUFFIX}", namespace=gateways)
        finally:
            await world.delete("Namespace", gateways)
            for kind in KINDS:
                await world.delete("CustomResourceDefinition", f"{kind.plural}.{kind.group}")
