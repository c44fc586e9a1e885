"""Cost of admission for users: Pods created through an API server without webhooks, with five, and with one for all.

Namespaces with and without webhooks are filled by turns; compare the rates of each pair. The pairs come one after
another, since an API server is busy for a while after many requests.
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from benchmarks.program import admission_server, make_certificate
from benchmarks.report import Table, number
from benchmarks.reviews import SERVICE_ACCOUNT, WEBHOOKS, pod_spec
from config.resource_manager import decode
from config.resource_manager.webhooks import Webhooks
from devcluster.cluster import Cluster
from kube.objects import Object
from kube.resources import PODS
from kube.runtime.client import Client
from kube.runtime.connection import load_kubeconfig
from kube.runtime.transport import Transport
from webhooks.configurations.objects import CaBundle, Url
from webhooks.configurations.registrations import configurations
from webhooks.rules.registration import Instance, Mode

_OF_PODS = (
    "kubernetesServiceHost",
    "podTopologySpreadConstraints",
    "projectedTokenMount",
    "seccompProfile",
    "systemComponentsConfig",
)
_KIND = "benchmark"
_KINDS = ("without", "separate", "combined")
_SETTLE_SECONDS = 3.0
_COLUMNS = ("webhooks", "at once", "p50 ms", "p99 ms", "Pods/s", "to without", "the original")
_ORIGINAL = {
    (1, "without"): "350 Pods/s",
    (1, "separate"): "86 Pods/s: 0.25",
    (8, "without"): "806 Pods/s",
    (8, "separate"): "175 Pods/s: 0.22",
    (32, "without"): "1023 Pods/s",
    (32, "separate"): "199 Pods/s: 0.19",
}


@dataclass(frozen=True, slots=True)
class Round:
    p50_ms: float
    p99_ms: float
    rate: float


async def measure(*, pods: int, rounds: int) -> Table:
    """Measure with `pods` Pods in each round and kind of namespace."""
    section = {name: WEBHOOKS[name] for name in _OF_PODS}
    async with Cluster() as cluster:
        with tempfile.TemporaryDirectory(prefix="admission-") as name:
            directory = Path(name)
            make_certificate(directory)
            with admission_server(cluster, directory, section) as server:
                server.start()
                await asyncio.to_thread(server.wait_until_ready)
                await asyncio.to_thread(_prepare, cluster, server.url, (directory / "tls.crt").read_bytes())
                await asyncio.sleep(_SETTLE_SECONDS)
                async with Transport(load_kubeconfig(cluster.kubeconfig, trusted=True)) as transport:
                    client = Client(transport, user_agent=_KIND)
                    rows = [row for at_once in (1, 8, 32) for row in await _rows(client, at_once, pods, rounds)]
    note = f"Medians of {rounds} rounds of {pods} Pods, by turns with and without webhooks; five webhooks."
    return Table("Creation of Pods", _COLUMNS, rows, [note])


def _prepare(cluster: Cluster, url: str, certificate: bytes) -> None:
    for kind in _KINDS:
        # Without the last label, the webhook for all namespaces would be called.
        none = {"apiserver-proxy.networking.gardener.cloud/inject": "disable"} if kind == "without" else {}
        labels = {_KIND: kind, "gardener.cloud/role": "benchmark", **none}
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": kind, "labels": labels}}
        cluster.api.create("/api/v1/namespaces", namespace)
        account = {"metadata": {"name": SERVICE_ACCOUNT}, "automountServiceAccountToken": False}
        cluster.api.create(f"/api/v1/namespaces/{kind}/serviceaccounts", account)
        if kind != "without":
            path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
            cluster.api.create(path, _configuration(kind, url, certificate))


def _configuration(kind: str, url: str, certificate: bytes) -> Object:
    """Installed configuration, restricted to the namespaces of a kind."""
    generated = configurations(
        _webhooks(),
        Instance(mode=Mode.RUNTIME),
        address=Url(url),
        trust=CaBundle(certificate),
        combined=kind == "combined",
    )
    found = next(each for each in generated if each["kind"] == "MutatingWebhookConfiguration")
    found["metadata"] = {"name": f"{_KIND}-{kind}"}
    for webhook in found["webhooks"]:
        selector = webhook["namespaceSelector"]
        selector["matchLabels"] = {**selector.get("matchLabels", {}), _KIND: kind}
    return found


def _webhooks() -> Webhooks:
    document = {
        "apiVersion": "resourcemanager.config.gardener.cloud/v1alpha1",
        "kind": "ResourceManagerConfiguration",
        "webhooks": {name: WEBHOOKS[name] for name in _OF_PODS},
    }
    return decode(yaml.safe_dump(document)).config.webhooks


async def _rows(client: Client, at_once: int, pods: int, rounds: int) -> list[list[str]]:
    return [row for kind in _KINDS[1:] for row in await _pair(client, kind, at_once, pods, rounds)]


async def _pair(client: Client, kind: str, at_once: int, pods: int, rounds: int) -> list[list[str]]:
    seen: dict[str, list[Round]] = {"without": [], kind: []}
    for number_of_round in range(rounds):
        for namespace, found in seen.items():
            prefix = f"{kind}-{at_once}-{number_of_round}"
            found.append(await _round(client, namespace, at_once, prefix=prefix, pods=pods))
    rate = _median(seen["without"], "rate")
    return [
        [
            *(name, str(at_once), number(_median(found, "p50_ms")), number(_median(found, "p99_ms"))),
            *(number(_median(found, "rate"), 0), number(_median(found, "rate") / rate, 2)),
            _ORIGINAL.get((at_once, name), ""),
        ]
        for name, found in seen.items()
    ]


def _median(rounds: Sequence[Round], name: str) -> float:
    return float(statistics.median(getattr(each, name) for each in rounds))


async def _round(client: Client, namespace: str, at_once: int, *, prefix: str, pods: int) -> Round:
    turns = asyncio.Semaphore(at_once)
    milliseconds: list[float] = []

    async def create(number_of_pod: int) -> None:
        async with turns:
            began = time.perf_counter()
            await client.create(PODS, _pod(f"p-{prefix}-{number_of_pod}", namespace))
            milliseconds.append((time.perf_counter() - began) * 1000)

    began = time.perf_counter()
    await asyncio.gather(*(create(number_of_pod) for number_of_pod in range(pods)))
    seconds = time.perf_counter() - began
    milliseconds.sort()
    return Round(milliseconds[pods // 2], milliseconds[int(pods * 0.99)], pods / seconds)


def _pod(name: str, namespace: str) -> Object:
    labels = {"app": "component", "pod-template-hash": "7c9f6d5b8"}
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    # A scheduler that does not exist: only the API server is measured.
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**pod_spec(), "schedulerName": "none"}}
