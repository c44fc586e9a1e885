"""Cost of admission of the garden API: CPU of a Shoot's create and update, memory with many Shoots, `kubectl apply`.

The API server calls the webhooks for the Shoots of one namespace and not for those of another; both are used by turns.
The reviews of the load match its requests: each webhook gets the Shoot as it is at that point.
"""

import asyncio
import base64
import contextlib
import copy
import http.client
import ssl
import statistics
import subprocess
import tempfile
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import yaml

from benchmarks.measuring import QUIET_SECONDS, connected
from benchmarks.program import Process, bare_server, garden_webhooks, make_certificate
from benchmarks.report import Table, number
from benchmarks.reviews import Load, review
from benchmarks.webhooks import COLUMNS, compared, demand_wrk
from benchmarks.workload import each_of
from config.webhooks.schema import Webhooks
from devcluster.cluster import Cluster
from devcluster.garden import objects
from gardener.api.garden import SEEDS, SHOOTS
from kube.objects import Key, Object, condition
from kube.runtime.client import Client
from localprocesses.local import HOST, LocalProcessError, wait_until
from webhooks.configurations.objects import CaBundle, Url
from webhooks.configurations.registrations import configurations
from webhooks.garden.conversion import PATH as CONVERSION_PATH
from webhooks.rules.registration import Instance, Mode

_ASKED, _NOT_ASKED = "garden-dev", "garden-apart"
_AT_ONCE = 16
_PATIENCE_SECONDS = 60.0
_USER = {"username": "administrator", "groups": ["system:masters", "system:authenticated"]}
_FIRST = "first"
_WORKER = {
    "name": "pool-0",
    "minimum": 1,
    "maximum": 3,
    "maxSurge": 1,
    "maxUnavailable": 0,
    "machine": {"type": "local", "image": {"name": "local", "version": "1.0.0"}},
    "volume": {"type": "local", "size": "50Gi"},
    "zones": ["a", "b"],
}
_SPEC: Object = {
    "purpose": "evaluation",
    "region": "local",
    "cloudProfile": {"kind": "CloudProfile", "name": "local"},
    "credentialsBindingName": "local",
    "kubernetes": {"version": "1.30.5", "kubeAPIServer": {"requests": {"maxNonMutatingInflight": 400}}},
    "networking": {"type": "local", "nodes": "10.250.0.0/16"},
    "maintenance": {
        "timeWindow": {"begin": "220000+0100", "end": "230000+0100"},
        "autoUpdate": {"kubernetesVersion": True, "machineImageVersion": True},
    },
    "hibernation": {"schedules": [{"start": "00 20 * * 1,2,3,4,5", "end": "00 6 * * 1,2,3,4,5"}]},
    "provider": {
        "type": "local",
        "infrastructureConfig": {"apiVersion": "local.example.com/v1", "kind": "InfrastructureConfig", "networks": {}},
        "workers": [{**_WORKER, "name": f"pool-{number_of_pool}"} for number_of_pool in range(3)],
    },
}
_NOW = "2026-01-01T00:00:00Z"
_STATUS: Object = {
    "observedGeneration": 1,
    "gardener": {"id": "id", "name": "gardenlet", "version": "v1.104.0"},
    "hibernated": False,
    "technicalID": "shoot--dev--s",
    "uid": "1e9f3d5c-0000-4000-8000-000000000000",
    "lastOperation": {
        "type": "Reconcile",
        "state": "Succeeded",
        "progress": 100,
        "description": "Shoot cluster has been reconciled.",
        "lastUpdateTime": _NOW,
    },
    "conditions": [
        {
            "type": kind,
            "status": "True",
            "reason": "AllWell",
            "message": "All that belongs to it is there and works.",
            "lastTransitionTime": _NOW,
            "lastUpdateTime": _NOW,
        }
        for kind in ("APIServerAvailable", "ControlPlaneHealthy", "EveryNodeReady", "SystemComponentsHealthy")
    ],
}


async def measure(*, seconds: float, rounds: int, shoots: int, seeds: int, applied: int) -> Table:
    """Measure; `applied` is the number of Shoots applied with and without webhooks each."""
    demand_wrk()
    async with Cluster() as cluster:
        with tempfile.TemporaryDirectory(prefix="garden-") as name:
            directory = Path(name)
            make_certificate(directory)
            with bare_server(directory) as bare, garden_webhooks(cluster, directory) as server:
                await asyncio.to_thread(_install, cluster, server, (directory / "tls.crt").read_bytes())
                for each in (bare, server):
                    each.start()
                    await asyncio.to_thread(each.wait_until_ready)
                empty = server.resident_mib()
                await asyncio.to_thread(_prepare, cluster)
                seconds_of = await asyncio.to_thread(_applied, cluster, directory, applied)
                async with connected(cluster) as (client, _):
                    await _fill(client, shoots=shoots, seeds=seeds)
                filled = server.resident_mib()
                loads = await asyncio.to_thread(_loads, cluster)
                await asyncio.to_thread(_demand_acceptance, server, loads, directory / "tls.crt")
                rows = [
                    row
                    for load in loads
                    for row in await asyncio.to_thread(
                        partial(compared, bare, server, load, directory=directory, at_once=(_AT_ONCE,)),
                        seconds=seconds,
                        rounds=rounds,
                    )
                ]
                peak = server.peak_mib()
    sizes = sorted(len(load.body) for load in loads)
    reviews = f"Reviews of {sizes[0]} to {sizes[-1]} bytes, with {shoots} Shoots and {seeds} Seeds in the caches"
    times = (f"{number(seconds_of[_ASKED], 2)} s with webhooks", f"{number(seconds_of[_NOT_ASKED], 2)} s without")
    notes = [
        f"{reviews}; *bare* and rounds as under *Admission*.",
        "",
        "Both webhooks review a write: its ratio to two requests of *bare* lies between those of its rows.",
        "",
        f"Memory: {empty:.0f} MiB in an empty garden, {filled:.0f} MiB with these, {peak:.0f} MiB at most, under load.",
        "",
        f"`kubectl apply` of a new Shoot: {times[0]}, {times[1]}: medians of {applied} each, by turns.",
    ]
    return Table("Garden API", COLUMNS, rows, notes)


# --- a garden whose webhooks are called for one namespace alone


def _install(cluster: Cluster, server: Process, certificate: bytes) -> None:
    """Install all but the webhooks, which are only called once their dependencies exist."""
    for obj in objects.roles():
        cluster.api.apply(objects.path(obj), obj)
    client_config = {"url": server.url + CONVERSION_PATH, "caBundle": base64.b64encode(certificate).decode()}
    definitions = objects.definitions({"clientConfig": client_config, "conversionReviewVersions": ["v1"]})
    for obj in definitions:
        cluster.api.apply(objects.path(obj), obj)
    for obj in definitions:
        wait_until(
            partial(_is_served, cluster, obj),
            what=f"{obj['metadata']['name']} to be served",
            within=_PATIENCE_SECONDS,
        )
    for generated in _configurations(server.url, certificate):
        plural = f"{generated['kind'].lower()}s"
        cluster.api.create(f"/apis/admissionregistration.k8s.io/v1/{plural}", generated)


def _configurations(url: str, certificate: bytes) -> list[Object]:
    """Installed configurations, restricted to the Shoots of one namespace."""
    generated = configurations(
        Webhooks(),
        Instance(mode=Mode.RUNTIME),
        address=Url(url),
        trust=CaBundle(certificate),
    )
    for found in generated:
        of_shoots = [webhook for webhook in found["webhooks"] if webhook["name"].startswith(f"{SHOOTS.plural}.")]
        selector = {"matchLabels": {"kubernetes.io/metadata.name": _ASKED}}
        found["webhooks"] = [{**webhook, "namespaceSelector": selector} for webhook in of_shoots]
    return generated


def _is_served(cluster: Cluster, definition: Object) -> bool:
    established = condition(cluster.api.get(objects.path(definition)), "Established")
    return established is not None and established["status"] == "True"


def _prepare(cluster: Cluster) -> None:
    """Create the objects that Shoots refer to, and a first Shoot."""
    for obj in objects.demo_data():
        cluster.api.apply(objects.path(obj), obj)
    cluster.api.create("/api/v1/namespaces", {"metadata": {"name": _NOT_ASKED}})
    wait_until(partial(_is_defaulted, cluster), what="the webhooks to be called", within=_PATIENCE_SECONDS)
    cluster.api.create(SHOOTS.path(namespace=_ASKED), shoot_in(_ASKED, _FIRST))


def _is_defaulted(cluster: Cluster) -> bool:
    created = cluster.api.create(f"{SHOOTS.path(namespace=_ASKED)}?dryRun=All", shoot_in(_ASKED, "probe"))
    return "gardener.cloud/created-by" in created["metadata"].get("annotations", {})


def shoot_in(namespace: str, name: str, **spec: Any) -> Object:
    """Return a Shoot with the common fields and those of `spec`."""
    meta = {"name": name, "namespace": namespace}
    return {**SHOOTS.type_meta, "metadata": meta, "spec": {**_SPEC, **spec}}


async def _fill(client: Client, *, shoots: int, seeds: int) -> None:
    """Create objects that look as if admitted by the webhooks, without calling these."""
    first = await client.get(SHOOTS, Key(_ASKED, _FIRST))

    async def seed(index: int) -> None:
        meta = {"name": f"seed-{index}"}
        await client.create(SEEDS, {**SEEDS.type_meta, "metadata": meta, "spec": SEED})

    async def shoot(index: int) -> None:
        obj = shoot_in(_NOT_ASKED, f"s-{index}") | {"spec": {**first["spec"], "seedName": f"seed-{index % seeds}"}}
        await client.create(SHOOTS, obj)
        await client.patch(SHOOTS, Key(_NOT_ASKED, f"s-{index}"), {"status": _STATUS}, subresource="status")

    await each_of(range(seeds), seed)
    await each_of(range(shoots), shoot)
    await asyncio.sleep(QUIET_SECONDS)


SEED: Object = {
    "provider": {"type": "local", "region": "local", "zones": ["a", "b", "c"]},
    "networks": {
        "nodes": "10.10.0.0/16",
        "pods": "10.20.0.0/16",
        "services": "10.30.0.0/16",
        "shootDefaults": {"pods": "100.96.0.0/11", "services": "100.64.0.0/13"},
    },
    "dns": {"provider": {"type": "local", "secretRef": {"name": "dns", "namespace": "garden"}}},
    "ingress": {"domain": "ingress.example.com", "controller": {"kind": "nginx"}},
}


# --- load


def _loads(cluster: Cluster) -> list[Load]:
    def created(namespace: str) -> Object:
        obj = cluster.api.create(f"{SHOOTS.path(namespace=namespace)}?dryRun=All", shoot_in(namespace, "new"))
        obj["metadata"]["namespace"] = _ASKED
        return obj

    stored = cluster.api.get(SHOOTS.path(namespace=_ASKED, name=_FIRST))
    changed = copy.deepcopy(stored)
    changed["spec"]["provider"]["workers"][0]["maximum"] += 1
    labelled = copy.deepcopy(stored)
    labelled["metadata"].setdefault("labels", {})["benchmark"] = "true"
    sent, defaulted = created(_NOT_ASKED), created(_ASKED)
    mutate, validate = (f"/webhooks/garden/{SHOOTS.plural}/{what}" for what in ("mutate", "validate"))
    return [
        Load("Shoot: create, mutate", mutate, review(sent, SHOOTS, user=_USER)),
        Load("Shoot: create, validate", validate, review(defaulted, SHOOTS, user=_USER)),
        Load("Shoot: update, mutate", mutate, review(changed, SHOOTS, user=_USER, old=stored)),
        Load("Shoot: update, validate", validate, review(changed, SHOOTS, user=_USER, old=stored)),
        Load("Shoot: label, mutate", mutate, review(labelled, SHOOTS, user=_USER, old=stored)),
        Load("Shoot: label, validate", validate, review(labelled, SHOOTS, user=_USER, old=stored)),
    ]


def _demand_acceptance(server: Process, loads: list[Load], certificate: Path) -> None:
    """Check that the webhooks admit the load: a refusal might cost less.

    Raises:
        LocalProcessError: a webhook refuses.
    """
    context = ssl.create_default_context(cafile=str(certificate))
    connection = http.client.HTTPSConnection(HOST, server.port, context=context, timeout=_PATIENCE_SECONDS)
    with contextlib.closing(connection):
        for load in loads:
            connection.request("POST", load.path, load.body, {"Content-Type": "application/json"})
            response = orjson.loads(connection.getresponse().read())["response"]
            if not response["allowed"]:
                raise LocalProcessError(f"{load.webhook}: {response['status']}")


# --- kubectl apply


def _applied(cluster: Cluster, directory: Path, count: int) -> Mapping[str, float]:
    """Median of the seconds by namespace."""
    seconds: dict[str, list[float]] = {_ASKED: [], _NOT_ASKED: []}
    for index in range(count):
        for namespace, found in seconds.items():
            file = directory / "shoot.yaml"
            file.write_text(yaml.safe_dump(shoot_in(namespace, f"a-{index}")))
            began = time.perf_counter()
            subprocess.run(
                ["kubectl", "apply", "--kubeconfig", str(cluster.kubeconfig), "-f", str(file)],
                check=True,
                capture_output=True,
                timeout=_PATIENCE_SECONDS,
            )
            found.append(time.perf_counter() - began)
    return {namespace: statistics.median(found) for namespace, found in seconds.items()}
