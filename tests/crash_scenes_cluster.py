"""What the agent does about things without a namespace, as scenes of `crash_sweep`: one at a time in a cluster."""

import asyncio
from typing import Any, ClassVar

from crash_sweep import AgentScene, find, remove, right, snapshot
from lenient_kinds import definition
from served_kinds import wait_until_served
from signing_requests import csr_object, signing_request

from agent.csr_approver.reconcile import CSRS
from agent.istio_cluster_configuration import keys as istio
from devcluster.cluster import Cluster
from kube.client import Client, Transport
from kube.connection import load_kubeconfig
from kube.objects import Key, annotations, condition
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, NODES, SERVICES, Resource

MACHINES = Resource("machine.sapcloud.io", "v1alpha1", "Machine", "machines", namespaced=True)
DEFINED = (MACHINES, istio.DESTINATION_RULES, istio.ENVOY_FILTERS)
"""Kinds that the cluster has to serve."""
_DELAY = "node-agent.gardener.cloud/reconciliation-delay"
_NOT_READY = {"key": "node.gardener.cloud/critical-components-not-ready", "effect": "NoSchedule"}
_KEPT = {"key": "example.com/keep", "effect": "NoSchedule"}


def install_kinds(cluster: Cluster) -> None:
    """Returns when they are served."""
    for resource in DEFINED:
        cluster.api.create(CUSTOM_RESOURCE_DEFINITIONS.path(), definition(resource))
    wait_until_served(cluster, *(resource.path() for resource in DEFINED))


class EverywhereScene(AgentScene):
    everywhere = True


class ApprovedRequest(EverywhereScene):
    """The kubelet of a Node asks for its certificate; what asks for another Node's is refused."""

    is_real = True
    crosses = frozenset({right("update certificatesigningrequests/approval.certificates.k8s.io")})

    def controllers(self) -> dict[str, Any]:
        return {"csrApprover": {"enabled": True, "machineNamespace": self.mark}}

    async def prepare(self) -> None:
        await self.make_namespace()
        await self.admin.create(NODES, {"metadata": {"name": self.mark}})
        addresses = [{"type": "Hostname", "address": self.mark}, {"type": "InternalIP", "address": "10.1.2.3"}]
        status = {"status": {"addresses": addresses}}
        await self.admin.patch(NODES, self.mark, status, subresource="status")
        machine = {"name": "m", "namespace": self.mark, "labels": {"node": self.mark}}
        kind = {"apiVersion": MACHINES.api_version, "kind": MACHINES.kind}
        await self.admin.create(MACHINES, {**kind, "metadata": machine})
        user = f"system:node:{self.mark}"
        kubeconfig = await asyncio.to_thread(self.cluster.kubeconfig_for, user, ("system:nodes",))
        async with Transport(load_kubeconfig(kubeconfig)) as transport:
            kubelet = Client(transport, user_agent="kubelet")
            for name, address in (("good", "10.1.2.3"), ("bad", "10.1.2.4")):
                body = signing_request(user, dns=[self.mark], ips=[address])
                csr = csr_object(body, name=f"{self.mark}-{name}")
                del csr["metadata"]["creationTimestamp"]
                await kubelet.create(CSRS, csr)

    async def _decisions(self) -> list[str]:
        found = []
        for name in ("good", "bad"):
            live = await find(self.admin, CSRS, Key("", f"{self.mark}-{name}")) or {}
            found += [kind for kind in ("Approved", "Denied") if condition(live, kind)]
        return found

    async def problem(self) -> str:
        decisions = await self._decisions()
        return "" if decisions == ["Approved", "Denied"] else f"decided {decisions}"

    async def state(self) -> Any:
        found = []
        for name in ("good", "bad"):
            live = await self.admin.get(CSRS, f"{self.mark}-{name}")
            conditions = live["status"]["conditions"]
            found.append([(each["type"], each["reason"], each["message"]) for each in conditions])
        return found

    async def clean_up(self) -> None:
        for name in ("good", "bad"):
            await remove(self.admin, CSRS, Key("", f"{self.mark}-{name}"))
        await remove(self.admin, NODES, Key("", self.mark))
        await super().clean_up()


class NodeScene(EverywhereScene):
    nodes: ClassVar[int] = 3

    @property
    def names(self) -> list[str]:
        return [f"{self.mark}-{number}" for number in range(self.nodes)]

    async def prepare(self) -> None:
        await self.make_namespace()
        for name in self.names:
            await self.admin.create(NODES, {"metadata": {"name": name}, "spec": {"taints": [_NOT_READY, _KEPT]}})

    async def clean_up(self) -> None:
        for name in self.names:
            await remove(self.admin, NODES, Key("", name))
        await super().clean_up()


class ReadyNodes(NodeScene):
    """Nothing critical is missing on them, and their taints may go."""

    is_real = True
    crosses = frozenset({right("patch nodes"), right("create events")})

    def controllers(self) -> dict[str, Any]:
        return {"nodeCriticalComponents": {"enabled": True}}

    async def problem(self) -> str:
        wanted = [_KEPT["key"]]
        wrong = {name: found for name, found in (await self.state()).items() if found != wanted}
        return f"taints: {wrong}" if wrong else ""

    async def state(self) -> Any:
        """Without those that belong to the cluster itself."""
        found = {}
        for name in self.names:
            taints = (await self.admin.get(NODES, name))["spec"].get("taints") or []
            own = [taint["key"] for taint in taints if not taint["key"].startswith("node.kubernetes.io/")]
            found[name.removeprefix(self.mark)] = own
        return found


class DelayedNodes(NodeScene):
    is_real = True
    crosses = frozenset({right("patch nodes")})

    def controllers(self) -> dict[str, Any]:
        return {"nodeAgentReconciliationDelay": {"enabled": True, "minDelay": "0s", "maxDelay": "5m"}}

    async def problem(self) -> str:
        delays = await self.state()
        return "" if set(delays.values()) == {"0s", "1m40s", "3m20s"} else f"delays: {delays}"

    async def state(self) -> Any:
        return {
            name.removeprefix(self.mark): annotations(await self.admin.get(NODES, name)).get(_DELAY)
            for name in self.names
        }


class ConfiguredGateways(EverywhereScene):
    """Of the gateways that see a Service one comes, one goes, and for one its ports change."""

    is_real = True
    warm = True
    crosses = frozenset(right(f"{verb} envoyfilters.networking.istio.io") for verb in ("create", "patch", "delete"))
    # What users change comes in several events; which of them a pass sees together is chance.
    spare = 1
    _gateways: ClassVar[dict[str, bool]] = {"a": True, "b": True, "c": False}

    def controllers(self) -> dict[str, Any]:
        return {"istioClusterConfiguration": {"enabled": True}}

    def _name(self, short: str) -> str:
        return f"{self.mark}-{short}"

    async def prepare(self) -> None:
        await self.make_namespace()
        for short, is_ingress in self._gateways.items():
            role = {istio.ROLE.replace("/", "__"): istio.INGRESS_ROLE if is_ingress else "other"}
            await self.make_namespace(self._name(short), **role)
        foreign = {"metadata": {"name": "foreign", "namespace": self._name("b")}, "spec": {}}
        kind = {"apiVersion": istio.ENVOY_FILTERS.api_version, "kind": "EnvoyFilter"}
        await self.make_foreign(istio.ENVOY_FILTERS, {**kind, **foreign})
        exported = {istio.EXPORT_TO: "*"}
        meta = {"name": "svc", "namespace": self.mark, "annotations": exported}
        await self.admin.create(SERVICES, {"metadata": meta, "spec": {"ports": [{"port": 443, "name": "https"}]}})
        rule = {
            "apiVersion": istio.DESTINATION_RULES.api_version,
            "kind": "DestinationRule",
            "metadata": {"name": "r", "namespace": self.mark},
            "spec": {"host": f"svc.{self.mark}.svc.cluster.local", "exportTo": ["*"]},
        }
        await self.admin.create(istio.DESTINATION_RULES, rule)
        self._wanted = {"a": [443], "b": [443]}

    async def change(self) -> None:
        for short, role in (("b", "other"), ("c", istio.INGRESS_ROLE)):
            await self.admin.patch(NAMESPACES, self._name(short), {"metadata": {"labels": {istio.ROLE: role}}})
        ports = {"spec": {"ports": [{"port": 443, "name": "https"}, {"port": 80, "name": "http"}]}}
        await self.admin.patch(SERVICES, "svc", ports, namespace=self.mark)
        self._wanted = {"a": [443, 80], "c": [443, 80]}

    async def problem(self) -> str:
        found = {}
        for short in self._gateways:
            name = Key(self._name(short), f"{self.mark}{istio.SUFFIX}")
            live = await find(self.admin, istio.ENVOY_FILTERS, name)
            if live is not None:
                clusters = [patch["match"]["cluster"]["name"] for patch in live["spec"]["configPatches"]]
                found[short] = [int(cluster.split("|")[1]) for cluster in clusters]
        return "" if found == self._wanted else f"ports are {found} instead of {self._wanted}"

    async def state(self) -> Any:
        names = [self._name(short) for short in self._gateways]
        return await snapshot(self.admin, self.mark, names, istio.ENVOY_FILTERS)

    async def clean_up(self) -> None:
        for short in self._gateways:
            await remove(self.admin, NAMESPACES, Key("", self._name(short)))
        await super().clean_up()


SCENES: tuple[type[AgentScene], ...] = (ApprovedRequest, ReadyNodes, DelayedNodes, ConfiguredGateways)
