"""What the agent does about things without a namespace, as scenes of `kit.crash.sweep`: one at a time in a cluster."""

import asyncio
from typing import Any, ClassVar

from agent.resource_manager.istio_cluster_configuration.rules import EXPORT_TO, SUFFIX
from devcluster.cluster import Cluster
from gardener import keys
from gardener.api import kinds
from kit.crash.sweep import AgentScene, crossing, scenes_of
from kit.kinds import serve
from kit.objects import obj, service
from kit.signing.requests import csr_object, signing_request
from kit.world import connected
from kube.objects import annotations, condition
from kube.resources import CERTIFICATE_SIGNING_REQUESTS, NODES

DEFINED = (kinds.MACHINES, kinds.DESTINATION_RULES, kinds.ENVOY_FILTERS)
"""Kinds that the cluster has to serve."""
_DELAY = "node-agent.gardener.cloud/reconciliation-delay"
_NOT_READY = {"key": "node.gardener.cloud/critical-components-not-ready", "effect": "NoSchedule"}
_KEPT = {"key": "example.com/keep", "effect": "NoSchedule"}


def install_kinds(cluster: Cluster) -> None:
    """Returns when they are served."""
    serve(cluster, *DEFINED)


class EverywhereScene(AgentScene):
    everywhere = True

    async def clean_up(self) -> None:
        await self.remove("Namespace", self.mark)


class ApprovedRequest(EverywhereScene):
    """The kubelet of a Node requests its certificate; what requests another Node's is refused."""

    is_real = True
    crosses = crossing("update certificatesigningrequests/approval.certificates.k8s.io")

    def controllers(self) -> dict[str, Any]:
        return {"csrApprover": {"enabled": True, "machineNamespace": self.mark}}

    async def prepare(self) -> None:
        await self.make_namespace()
        await self.create(obj(NODES, self.mark))
        addresses = [{"type": "Hostname", "address": self.mark}, {"type": "InternalIP", "address": "10.1.2.3"}]
        await self.patch("Node", self.mark, {"status": {"addresses": addresses}}, subresource="status")
        await self.create(obj(kinds.MACHINES, "m", labels={"node": self.mark}))
        user = f"system:node:{self.mark}"
        kubeconfig = await asyncio.to_thread(self.cluster.kubeconfig_for, user, ("system:nodes",))
        async with connected(kubeconfig, "kubelet") as kubelet:
            for name, address in (("good", "10.1.2.3"), ("bad", "10.1.2.4")):
                body = signing_request(user, dns=[self.mark], ips=[address])
                csr = csr_object(body, name=f"{self.mark}-{name}")
                del csr["metadata"]["creationTimestamp"]
                await kubelet.create(CERTIFICATE_SIGNING_REQUESTS, csr)

    async def _decisions(self) -> list[str]:
        found = []
        for name in ("good", "bad"):
            live = await self.find(CERTIFICATE_SIGNING_REQUESTS, f"{self.mark}-{name}") or {}
            found += [kind for kind in ("Approved", "Denied") if condition(live, kind)]
        return found

    async def problem(self) -> str:
        decisions = await self._decisions()
        return "" if decisions == ["Approved", "Denied"] else f"decided {decisions}"

    async def state(self) -> Any:
        found = []
        for name in ("good", "bad"):
            live = await self.get(CERTIFICATE_SIGNING_REQUESTS, f"{self.mark}-{name}")
            conditions = live["status"]["conditions"]
            found.append([(each["type"], each["reason"], each["message"]) for each in conditions])
        return found

    async def clean_up(self) -> None:
        for name in ("good", "bad"):
            await self.remove(CERTIFICATE_SIGNING_REQUESTS, f"{self.mark}-{name}")
        await self.remove("Node", self.mark)
        await super().clean_up()


class NodeScene(EverywhereScene):
    nodes: ClassVar[int] = 3

    @property
    def _names(self) -> list[str]:
        return [f"{self.mark}-{number}" for number in range(self.nodes)]

    async def prepare(self) -> None:
        await self.make_namespace()
        for name in self._names:
            await self.create(obj(NODES, name, spec={"taints": [_NOT_READY, _KEPT]}))

    async def clean_up(self) -> None:
        for name in self._names:
            await self.remove("Node", name)
        await super().clean_up()


class ReadyNodes(NodeScene):
    """Nothing critical is missing on them, and their taints may go."""

    is_real = True
    crosses = crossing("patch nodes", "create events")

    def controllers(self) -> dict[str, Any]:
        return {"nodeCriticalComponents": {"enabled": True}}

    async def problem(self) -> str:
        wanted = [_KEPT["key"]]
        wrong = {name: found for name, found in (await self.state()).items() if found != wanted}
        return f"taints: {wrong}" if wrong else ""

    async def state(self) -> Any:
        """Without those that belong to the cluster itself."""
        found = {}
        for name in self._names:
            taints = (await self.get("Node", name))["spec"].get("taints") or []
            own = [taint["key"] for taint in taints if not taint["key"].startswith("node.kubernetes.io/")]
            found[name.removeprefix(self.mark)] = own
        return found


class DelayedNodes(NodeScene):
    is_real = True
    crosses = crossing("patch nodes")

    def controllers(self) -> dict[str, Any]:
        return {"nodeAgentReconciliationDelay": {"enabled": True, "minDelay": "0s", "maxDelay": "5m"}}

    async def problem(self) -> str:
        delays = await self.state()
        return "" if set(delays.values()) == {"0s", "1m40s", "3m20s"} else f"delays: {delays}"

    async def state(self) -> Any:
        return {
            name.removeprefix(self.mark): annotations(await self.get("Node", name)).get(_DELAY) for name in self._names
        }


class ConfiguredGateways(EverywhereScene):
    """Of the gateways that see a Service one comes, one goes, and for one its ports change."""

    is_real = True
    warm = True
    crosses = crossing(*(f"{verb} envoyfilters.networking.istio.io" for verb in ("create", "patch", "delete")))
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
            role = {keys.ROLE.replace("/", "__"): keys.ROLE_ISTIO_INGRESS if is_ingress else "other"}
            await self.make_namespace(self._name(short), **role)
        await self.make_foreign(obj(kinds.ENVOY_FILTERS, "foreign", namespace=self._name("b"), spec={}))
        svc = service("svc", ports=[{"port": 443, "name": "https"}])
        svc["metadata"]["annotations"] = {EXPORT_TO: "*"}
        await self.create(svc)
        exported = {"host": f"svc.{self.mark}.svc.cluster.local", "exportTo": ["*"]}
        await self.create(obj(kinds.DESTINATION_RULES, "r", spec=exported))
        self._wanted = {"a": [443], "b": [443]}

    async def change(self) -> None:
        for short, role in (("b", "other"), ("c", keys.ROLE_ISTIO_INGRESS)):
            await self.patch("Namespace", self._name(short), {"metadata": {"labels": {keys.ROLE: role}}})
        ports = {"spec": {"ports": [{"port": 443, "name": "https"}, {"port": 80, "name": "http"}]}}
        await self.patch("Service", "svc", ports)
        self._wanted = {"a": [443, 80], "c": [443, 80]}

    async def problem(self) -> str:
        found = {}
        for short in self._gateways:
            live = await self.find(kinds.ENVOY_FILTERS, f"{self.mark}{SUFFIX}", namespace=self._name(short))
            if live is not None:
                clusters = [patch["match"]["cluster"]["name"] for patch in live["spec"]["configPatches"]]
                found[short] = [int(cluster.split("|")[1]) for cluster in clusters]
        return "" if found == self._wanted else f"ports are {found} instead of {self._wanted}"

    async def state(self) -> Any:
        return await self.snapshot(kinds.ENVOY_FILTERS, namespaces=[self._name(short) for short in self._gateways])

    async def clean_up(self) -> None:
        for short in self._gateways:
            await self.remove("Namespace", self._name(short))
        await super().clean_up()


SCENES = scenes_of(__name__)
