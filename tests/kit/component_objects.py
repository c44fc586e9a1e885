"""Objects of components of seeds and Shoots, for inputs and their variants that matter, as reviewable text."""

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any

import yaml

from components import cluster_identity, ingress_gateway, istiod, registry, resource_manager, seed_registry, system
from components.component import Component
from components.control_plane import Running
from components.results import Address
from components.seed_component import SeedComponent, SeedInputs
from components.worker_pools import node_agent, operating_system
from components.worker_pools.pools import VERSION, pools_of
from config.gardenlet.schema import SHOOT_COMPONENTS, GardenletConfiguration, Images
from gardener.managed_resource.bundle import DATA_KEY
from gardener.managed_resource.decode import decode_secrets
from gardener.managed_resource.plan import data_of
from kit.shoot_inputs import NamedSecrets, inputs, shoot_with
from kube.objects import Object, key
from kube.paths import at
from kube.yaml import Dumper

Objects = Callable[[], Iterable[Object]]
Variants = Mapping[str, Objects]
"""Objects by the name of the variant; the first one has none."""

NAMESPACE = "shoot--a--b"

# --- of seeds

_IMAGE_NAMES: Object = {each.name: f"registry/{each.name}:v1.2.3" for each in fields(Images) if each.default == ""}
_IMAGES = Images(**_IMAGE_NAMES)
_SEED: Object = {
    "metadata": {"name": "meadow"},
    "spec": {
        "ingress": {"domain": "in.example.com"},
        "networks": {"nodes": "10.250.0.0/16", "pods": "10.2.0.0/16"},
        "settings": {"excessCapacityReservation": {"configs": [{"resources": {"cpu": "2", "memory": "6Gi"}}]}},
        "volume": {"minimumSize": "20Gi"},
    },
}
_PLAIN_SEED: Object = {"metadata": {"name": "meadow"}}


def _of_seed(component: SeedComponent) -> Variants:
    given = SeedInputs(
        config=GardenletConfiguration(images=_IMAGES),
        seed=_SEED,
        secrets=NamedSecrets({"plutono-admin": {"username": b"admin", "password": b"password"}}),
        identity="identity",
        served=component.asks_for,
        login_secret="login",
    )
    variants = {"": given, "plain": replace(given, seed=_PLAIN_SEED, served=())}
    return {name: partial(component.objects, each) for name, each in variants.items()}


def _gateways(zones: int, *, monitored: bool = True, **values: Any) -> list[Object]:
    usual = ingress_gateway.Values(image="registry/proxy:v1.2.3", zones=zones, monitored=monitored)
    others = [replace(usual, **values, zones=1)] if values else []
    return ingress_gateway.objects(usual, *others)


_MANAGER = resource_manager.Values(image="registry/manager:v1.2.3", server_secret="server", ca_bundle="bundle")
_SEED_ITSELF: Mapping[str, Variants] = {
    "istiod": {
        "": lambda: istiod.objects(istiod.Values(image="registry/pilot:v1.2.3")),
        "plain": lambda: istiod.objects(istiod.Values(image="registry/pilot:v1.2.3", monitored=False)),
    },
    "ingress-gateway": {
        "": partial(_gateways, 1),
        "zones": partial(
            _gateways,
            3,
            namespace="istio-ingress--a",
            labels={"app": "istio-ingressgateway", "istio": "ingressgateway--zone--a"},
            annotations={"provider/kind": "internal"},
            address="192.0.2.9",
            traffic_policy="Local",
        ),
        "plain": partial(_gateways, 1, monitored=False),
    },
    "resource-manager": {
        "": lambda: resource_manager.objects(_MANAGER),
        "zones": lambda: resource_manager.objects(replace(_MANAGER, zones=("a", "b", "c"))),
        "plain": lambda: resource_manager.objects(replace(_MANAGER, autoscaled=False, monitored=False)),
    },
}
"""Components without a definition."""

# --- of Shoots

_POOL: Object = {
    "name": "pool",
    "minimum": 1,
    "maximum": 2,
    "machine": {"type": "small", "image": {"name": "linux", "version": "1.0.0"}},
    "zones": ["a"],
}
_PROFILE: Object = {"metadata": {"name": "profile"}, "spec": {"machineTypes": [{"name": "small", "cpu": "1"}]}}
_KNOWN: Mapping[str, Any] = {
    "seed": _SEED,
    "profile": _PROFILE,
    "host": "api.b.a.example.com",
    "address": Address("192.0.2.1"),
    "cluster_ip": "10.0.0.1",
    "garden_identity": "garden",
    "namespace_uid": "uid",
    "worker": {"status": {"machineDeployments": [{"name": "b-pool-z1", "minimum": 1, "maximum": 2}]}},
}


def _shoot(networks: Object | None = None, *, workers: Sequence[Object] = (_POOL,), **settings: Any) -> Object:
    found = shoot_with(verticalPodAutoscaler={"enabled": True}, **settings)
    found["spec"]["provider"]["workers"] = list(workers)
    found["spec"]["networking"] |= {"nodes": "10.250.0.0/16", **(networks or {})}
    return found


_IPV6 = {"pods": "2001:db8:1::/48", "services": "2001:db8:2::/112", "nodes": "2001:db8:3::/48", "ipFamilies": ["IPv6"]}
_SETTINGS: Object = {
    "kubeAPIServer": {"auditConfig": {}, "requests": {"maxMutatingInflight": 1}, "eventTTL": "2h0m0s"},
    "kubeControllerManager": {"nodeCIDRMaskSize": 23, "featureGates": {"AllAlpha": True}},
    "kubeScheduler": {"profile": "bin-packing"},
    "kubeProxy": {"mode": "IPVS", "featureGates": {"AllAlpha": True}},
    "clusterAutoscaler": {"expander": "priority", "maxNodesTotal": 7},
}
_OLD_NODE: Object = {"metadata": {"labels": {"worker.gardener.cloud/pool": "pool", VERSION: "1.29.9"}}}
_VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "": {"shoot": _shoot()},
    "workerless": {"shoot": _shoot(workers=())},
    "ha": {"shoot": _shoot(tolerance="zone")},
    "hibernated": {"shoot": _shoot(), "running": Running.ASLEEP},
    "ipv6": {"shoot": _shoot(_IPV6)},
    "local": {
        "shoot": _shoot(),
        "omitted": SHOOT_COMPONENTS,
        "mutates_pods": False,
        "address": Address("127.0.0.1", 6443),
    },
    "unscaled": {"shoot": _shoot(), "autoscaled": False},
    "settings": {
        "shoot": _shoot(**_SETTINGS),
        "live": {"nodes": [_OLD_NODE]},
        "tasks": ["restartCoreAddons"],
        "now": "2026-01-01T00:00:00Z",
    },
}


def _of_shoot(component: Component) -> Variants:
    found: dict[str, Objects] = {}
    for name, known in _VARIANTS.items():
        if name == "workerless" and component.is_of_workers:
            continue
        live = dict.fromkeys(component.reads, ()) | known.get("live", {})
        found[name] = partial(component.made, inputs(**{**_KNOWN, **known, "live": live}))
    return found


def _pools(version: str = "1.30.1", *public_keys: bytes, **pool: Any) -> list[Object]:
    (config,) = pools_of(_shoot(version=version, workers=[{**_POOL, **pool}]), _PROFILE)
    systems = operating_system.objects(
        operating_system.Values(
            namespace=NAMESPACE,
            pool=config,
            type="linux",
            server="https://api.b.a.example.com",
            ca_bundle=b"ca",
            trusted=b"trusted",
            kubelet_ca=b"ca-kubelet",
            dns="10.0.0.10",
            images=operating_system.Images(pause="registry/pause", agent="registry/agent", kubelet="registry/kubelet"),
            public_keys=public_keys,
        )
    )
    return [*systems, *node_agent.objects(NAMESPACE, [(config, systems[1])])]


_SHOOT_ITSELF: Mapping[str, Variants] = {
    "worker-pools": {
        "": partial(_pools, "1.30.1", b"ssh-rsa a"),
        "settings": partial(
            _pools,
            "1.31.0",
            sysctls={"vm.max_map_count": "1", "vm.swappiness": "2"},
            kubernetes={"version": "1.31.0", "kubelet": {"maxPods": 200, "featureGates": {"AllAlpha": True}}},
        ),
    },
}


COMPONENTS: Mapping[str, Variants] = {
    **{
        f"seed/{each.name}": _of_seed(each)
        for each in (*seed_registry.COMPONENTS, system.COMPONENT, cluster_identity.COMPONENT)
    },
    **{f"seed/{name}": variants for name, variants in _SEED_ITSELF.items()},
    **{f"shoot/{each.name}": _of_shoot(each) for each in registry.COMPONENTS},
    **{f"shoot/{name}": variants for name, variants in _SHOOT_ITSELF.items()},
}
"""Variants of each component, by its path."""


# --- text


def files(component: str) -> dict[str, str]:
    """Text of all objects, and for each variant, of the objects that only the variant has. Other variants are left out.

    The text of an object is YAML. Those in a ManagedResource follow it, and encoded texts are decoded.
    """
    first, *others = COMPONENTS[component].items()
    usual = list(_documents(first[1]()))
    found = {component: "".join(usual)}
    for name, objects in others:
        made = list(_documents(objects()))
        missing = {each.partition("\n")[0] for each in usual} - {each.partition("\n")[0] for each in made}
        changed = [each for each in made if each not in usual] + [f"{each} (missing)\n" for each in sorted(missing)]
        if changed:
            found[f"{component}-{name}"] = "".join(changed)
    return {f"{name}.yaml": text for name, text in found.items() if text}


def _documents(objects: Iterable[Object]) -> Iterator[str]:
    bundled: list[Object] = []
    for each in objects:
        if DATA_KEY in (each.get("data") or {}):
            bundled.append(each)
            continue
        yield _document(each)
        if each["kind"] == "ManagedResource":
            contents = decode_secrets([data_of(secret) for secret in bundled]).objects
            bundled = []
            for item in contents:
                yield _document(item.object, f" in {key(each).name}")


def _document(obj: Object, where: str = "") -> str:
    written: str = yaml.dump(_decoded(obj), Dumper=Dumper, sort_keys=True, width=1 << 20)
    namespace, name = key(obj)
    return f"--- # {obj['kind']} {f'{namespace}/' if namespace else ''}{name}{where}\n{written}"


def _decoded(obj: Object) -> Object:
    if obj["kind"] == "Secret":
        data = {name: base64.b64decode(value).decode() for name, value in (obj.get("data") or {}).items()}
        return {**obj, "data": data} if data else obj
    return obj if obj["kind"] != "OperatingSystemConfig" else {**obj, "spec": _with_texts(obj["spec"])}


def _with_texts(spec: Object) -> Object:
    """Spec of an OperatingSystemConfig with decoded files."""

    def decoded(file: Object) -> Object:
        if at(file, "content", "inline", "encoding") != "b64":
            return file
        text = base64.b64decode(file["content"]["inline"]["data"]).decode()
        return {**file, "content": {"inline": {"encoding": "b64", "data": text}}}

    return {**spec, "files": [decoded(each) for each in spec["files"]]}
