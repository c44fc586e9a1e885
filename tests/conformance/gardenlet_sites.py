"""The garden and the seed that scenarios of a gardenlet are replayed in, as their administrators see them."""

import base64
import contextlib
import secrets
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from conformance.scenario_data import Ref
from devcluster.cluster import Cluster
from kit.eventually import soon
from kit.kubeconfigs import kubeconfig
from kit.signing.requests import CLIENT, csr_object, signing_request
from kit.world import connected
from kube.errors import AlreadyExists, KindNotServed, NotFound
from kube.objects import Key, Object, annotations, labels, mapping
from kube.resources import CERTIFICATE_SIGNING_REQUESTS, EVENTS
from kube.runtime.client import Client, Selection
from kube.runtime.discovery import Discovery

_ADMINISTRATORS = ("system:masters",)
_PKCS8 = serialization.PrivateFormat.PKCS8


@dataclass(frozen=True, slots=True)
class Site:
    cluster: Cluster
    client: Client
    discovery: Discovery
    kubeconfig_file: Any
    """Of the administrator of the recording."""
    unanswered: set[Ref] = field(default_factory=set)
    """Objects whose creation failed: it may have succeeded, and only the answer was lost."""

    @property
    def ca(self) -> str:
        """As kubeconfigs have it."""
        return base64.b64encode(self.cluster.ca.encode()).decode()

    def kubeconfig(self, user: Object, url: str = "") -> Object:
        given = kubeconfig(user, cluster={"certificate-authority-data": self.ca}, server=url or self.cluster.url)
        contexts = [{"name": "c", "context": {"cluster": "c", "user": "u"}}]
        return {"apiVersion": "v1", "kind": "Config", **given, "contexts": contexts, "current-context": "c"}

    async def get(self, ref: Ref) -> Object | None:
        try:
            resource = await self.discovery.find(ref.api_version, ref.kind)
            return await self.client.get(resource, Key(ref.namespace if resource.namespaced else "", ref.name))
        except (NotFound, KindNotServed):
            return None

    async def listed(self, api_version: str, kind: str, namespace: str = "", selector: str = "") -> list[Object]:
        resource = await self.discovery.find(api_version, kind)
        namespace = namespace if resource.namespaced else ""
        found = await self.client.list(resource, Selection(namespace=namespace, label_selector=selector))
        return [{**each, "apiVersion": api_version, "kind": kind} for each in found]

    async def events(self, ref: Ref) -> list[Object]:
        resource = await self.discovery.find(ref.api_version, ref.kind)
        namespace = ref.namespace if resource.namespaced else "default"
        about = f"involvedObject.name={ref.name},involvedObject.kind={ref.kind}"
        return await self.client.list(EVENTS, Selection(namespace=namespace, field_selector=about))

    async def put(self, given: Object) -> None:
        """Create it, or replace what it reports; what others wrote to the metadata stays."""
        body = {name: value for name, value in given.items() if name != "status"}
        resource = await self.discovery.find(given["apiVersion"], given["kind"])
        name, namespace = given["metadata"]["name"], given["metadata"].get("namespace", "")
        ref = Ref.of(given)
        if ref not in self.unanswered and await self.get(ref) is None:
            self.unanswered.add(ref)
        if ref in self.unanswered:
            with contextlib.suppress(AlreadyExists):
                await self.client.create(resource, body)
            self.unanswered.discard(ref)
        else:
            live = await self.client.get(resource, Key(namespace, name))
            kept = {
                **live["metadata"],
                "labels": {**labels(live), **labels(body)},
                "annotations": {**annotations(live), **annotations(body)},
            }
            await self.client.replace(resource, {**body, "metadata": {**live["metadata"], **body["metadata"], **kept}})
        if "status" in given:
            patch = {"status": given["status"]}
            await self.client.patch(resource, Key(namespace, name), patch, subresource="status")

    async def patch(self, ref: Ref, body: Object, *, subresource: str = "") -> None:
        resource = await self.discovery.find(ref.api_version, ref.kind)
        namespace = ref.namespace if resource.namespaced else ""
        await self.client.patch(resource, Key(namespace, ref.name), body, subresource=subresource)

    async def delete(self, ref: Ref) -> None:
        resource = await self.discovery.find(ref.api_version, ref.kind)
        await self.client.delete(resource, Key(ref.namespace if resource.namespaced else "", ref.name))

    async def decide(self, csr: Object, condition_type: str) -> None:
        condition = {"type": condition_type, "status": "True", "reason": "Played", "message": "played"}
        status = {**mapping(csr.get("status")), "conditions": [condition]}
        await self.client.replace(CERTIFICATE_SIGNING_REQUESTS, {**csr, "status": status}, subresource="approval")

    async def certified(
        self, name: str, organizations: Sequence[str], *, dns: Sequence[str], seconds: int | None
    ) -> Object:
        """A user with a certificate of the cluster's own signer."""
        key, request = ec.generate_private_key(ec.SECP256R1()), f"made-{secrets.token_hex(5)}"
        pem = signing_request(name, organizations=organizations, dns=dns, private_key=key)
        requested = csr_object(pem, name=request, signer=CLIENT, usages=["client auth"])
        if seconds is not None:
            requested["spec"]["expirationSeconds"] = seconds
        await self.decide(await self.client.create(CERTIFICATE_SIGNING_REQUESTS, requested), "Approved")

        async def issued() -> str:
            live = await self.client.get(CERTIFICATE_SIGNING_REQUESTS, request)
            return str(mapping(live.get("status")).get("certificate") or "")

        certificate = await soon(issued, "the certificate")
        await self.client.delete(CERTIFICATE_SIGNING_REQUESTS, request)
        own = key.private_bytes(serialization.Encoding.PEM, _PKCS8, serialization.NoEncryption())
        return {"client-certificate-data": certificate, "client-key-data": base64.b64encode(own).decode()}


Sites = dict[str, Site]
"""By the name of the cluster: `garden` and `seed`."""


@contextlib.asynccontextmanager
async def sites(clusters: dict[str, Cluster]) -> AsyncIterator[Sites]:
    async with contextlib.AsyncExitStack() as stack:
        found = {}
        for name, cluster in clusters.items():
            file = cluster.kubeconfig_for("admin", _ADMINISTRATORS)
            client = await stack.enter_async_context(connected(file, "scenarios"))
            found[name] = Site(cluster, client, Discovery(client), file)
        yield found
