"""What users write for a model, and what has to come of it. Plain functions.

`inputs` are written by users: ManagedResources with their Secrets, Services, Secrets that ask for tokens, Nodes and the
like. `expected` is what agent and webhooks have to make of them.
"""

import base64
import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import brotli
import orjson

from agent.resource_manager.node.critical_components.rules import NAMESPACE
from campaign.model import FLEETING, SETTLED, Model
from gardener import keys
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.keys import FROM_PREFIX, FROM_SUFFIX, FROM_WORLD, GARBAGE_COLLECTABLE, NAMESPACE_SELECTORS
from gardener.references import annotation_key
from kit import objects
from kit.objects import CONTAINERS
from kube.objects import Object
from kube.resources import (
    CONFIG_MAPS,
    CRON_JOBS,
    CSI_NODES,
    DAEMON_SETS,
    DEPLOYMENTS,
    NAMESPACES,
    NETWORK_POLICIES,
    NODES,
    PODS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    Resource,
)

WORK = "work"
"""The namespace of the source cluster that users write to."""
WIDGETS = Resource("campaign.example", "v1", "Widget", "widgets", namespaced=True)
MANAGED_KINDS = {
    resource.kind: resource
    for resource in (CONFIG_MAPS, SECRETS, SERVICES, ROLES, SERVICE_ACCOUNTS, DEPLOYMENTS, WIDGETS)
}
_RESOURCES = objects.KINDS | MANAGED_KINDS
REFERRERS = (DEPLOYMENTS, CRON_JOBS)
LOOKED_AT = {
    "source": (MANAGED_RESOURCES, SECRETS),
    "target": (*MANAGED_KINDS.values(), NETWORK_POLICIES, NODES, PODS),
}
"""What snapshots hold."""

NAMESPACE_LABELS = {"gardener.cloud/role": "shoot", "campaign.example/policies": "true"}
_COLLECTABLES = {"configmap": CONFIG_MAPS, "secret": SECRETS}
_TAINT = {"key": keys.CRITICAL_COMPONENTS_NOT_READY, "effect": "NoSchedule"}
_DRIVER = "storage.campaign.example"
_CRITICAL: Object = {
    "tolerations": [{"operator": "Exists"}],
    "automountServiceAccountToken": False,
    "terminationGracePeriodSeconds": 0,
    "containers": CONTAINERS,
}
"""Pods that run anywhere, and go at once."""
_ALIAS, _ALIAS_PORT = "all-friends", 9000


class Place(NamedTuple):
    cluster: str
    resource: Resource
    namespace: str
    name: str

    def __str__(self) -> str:
        where = f"{self.namespace}/" if self.namespace else ""
        return f"{self.cluster}: {self.resource.kind} {where}{self.name}"


@dataclass(frozen=True, slots=True)
class Input:
    obj: Object
    once: bool = False
    """Created, and then left to others: neither changed nor deleted."""
    is_deleted: bool = True
    """With what requested it."""


@dataclass(slots=True)
class Expected:
    managed: dict[Place, tuple[Object, str]] = field(default_factory=dict)
    """Objects with their manifests, and the names of their ManagedResources."""
    policies: dict[Place, Object | None] = field(default_factory=dict)
    """With the pod selectors; None: any."""
    collectables: dict[Place, bool] = field(default_factory=dict)
    """Whether something refers to them."""
    tokens: dict[Place, str] = field(default_factory=dict)
    """Secrets with tokens, and whose these are."""
    tainted: dict[str, bool] = field(default_factory=dict)
    """Nodes, and whether they have to wait."""


def place_of(cluster: str, resource: Resource, obj: Object) -> Place:
    return Place(cluster, resource, obj["metadata"].get("namespace", ""), obj["metadata"]["name"])


def _object(resource: Resource, namespace: str, name: str, meta: Object | None = None, **fields: Any) -> Object:
    return objects.obj(resource, f"{namespace}/{name}", **(meta or {}), **fields)


# --- what users write


def inputs(model: Model) -> dict[Place, Input]:
    """In the order in which they are written."""
    found: dict[Place, Input] = {}
    for cluster, each in (*_managed_inputs(model), *_target_inputs(model), *_token_inputs(model)):
        resource = _RESOURCES[each.obj["kind"]]
        found[place_of(cluster, resource, each.obj)] = each
    return found


def _managed_inputs(model: Model) -> Iterator[tuple[str, Input]]:
    for name, entry in model["managed"].items():
        # An object stays in its Secret, or all of them change at once: what is not in any may be deleted.
        count = entry["secrets"]
        parts: dict[str, list[Object]] = {f"{name}-{count}-{number}": [] for number in range(count)}
        for reference, version in sorted(entry["objects"].items()):
            part = f"{name}-{count}-{zlib.crc32(reference.encode()) % count}"
            parts[part].append(manifest(reference, version))
        for secret, held in parts.items():
            documents = b"".join(b"---\n" + orjson.dumps(each) + b"\n" for each in held)
            key = "objects.yaml"
            if entry["packing"] == "brotli":
                key, documents = "objects.yaml.br", brotli.compress(documents, quality=4)
            yield "source", Input(_object(SECRETS, WORK, secret, data={key: _base64(documents)}))
        spec = {"secretRefs": [{"name": secret} for secret in parts]}
        if entry["class"]:
            spec["class"] = entry["class"]
        yield "source", Input(_object(MANAGED_RESOURCES, WORK, name, spec=spec))


def manifest(reference: str, version: int) -> Object:
    """An object of a ManagedResource, named like `ConfigMap/apps-0/o-1`; all of them depend on the version."""
    kind, namespace, name = reference.split("/")
    resource, text = MANAGED_KINDS[kind], str(version)
    match kind:
        case "ConfigMap":
            return _object(resource, namespace, name, data={"version": text})
        case "Secret":
            return _object(resource, namespace, name, data={"version": _base64(text.encode())})
        case "Service":
            selector = {"app": name, "version": text}
            return _object(resource, namespace, name, spec={"selector": selector, "ports": [_service_port(80)]})
        case "Role":
            rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": [text]}]
            return _object(resource, namespace, name, rules=rules)
        case "Deployment":
            container = {"name": "c", "image": "i", "env": [{"name": "VERSION", "value": text}]}
            # Pods go at once: how long they take is not tested here.
            pod = {"terminationGracePeriodSeconds": 0, "containers": [container]}
            return objects.deployment(name, namespace=namespace, replicas=version % 2, pod=pod)
        case "Widget":
            return _object(resource, namespace, name, spec={"version": text})
        case _:
            return _object(resource, namespace, name, {"labels": {"version": text}})


def _target_inputs(model: Model) -> Iterator[tuple[str, Input]]:
    for name, entry in model["services"].items():
        namespace, _, service = name.partition("/")
        spec = {"selector": {"app": service}, "ports": [_service_port(entry["port"])]}
        yield "target", Input(_object(SERVICES, namespace, service, {"annotations": _annotations(entry)}, spec=spec))
    for name, entry in model["referrers"].items():
        namespace, _, referrer = name.partition("/")
        yield "target", Input(_referrer(namespace, referrer, entry))
    for name in model["collectables"]:
        kind, namespace, collectable = name.split("/")
        meta = {"labels": {GARBAGE_COLLECTABLE: "true"}}
        obj = _object(_COLLECTABLES[kind], namespace, collectable, meta, immutable=True)
        yield "target", Input(obj, once=True, is_deleted=False)
    for name, entry in model["nodes"].items():
        yield from (("target", each) for each in _node_inputs(name, waits=entry["waits"]))


def _service_port(port: int) -> Object:
    return {"port": port, "targetPort": port, "protocol": "TCP"}


def _annotations(entry: Object) -> dict[str, str]:
    selectors = [{"matchLabels": {"kubernetes.io/metadata.name": client}} for client in entry["clients"]]
    annotations = {NAMESPACE_SELECTORS: json.dumps(selectors)} if selectors else {}
    if entry["alias"]:
        annotations[f"{FROM_PREFIX}{_ALIAS}{FROM_SUFFIX}"] = json.dumps([{"port": _ALIAS_PORT, "protocol": "TCP"}])
    if entry["world"]:
        annotations[FROM_WORLD] = json.dumps([{"port": entry["port"], "protocol": "TCP"}])
    return annotations


def _referrer(namespace: str, name: str, entry: Object) -> Object:
    refers = [each.split("/") for each in entry["refers"]]
    meta = {"annotations": {annotation_key(kind, collectable): collectable for kind, _, collectable in refers}}
    if entry["kind"] == "Deployment":
        return objects.deployment(name, namespace=namespace, annotations=meta["annotations"])
    pod = {"containers": CONTAINERS, "restartPolicy": "Never"}
    job = {"spec": {"template": {"metadata": {"labels": {"app": name}}, "spec": pod}}}
    return _object(
        CRON_JOBS, namespace, name, meta, spec={"schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": job}
    )


def _node_inputs(name: str, *, waits: bool) -> Iterator[Input]:
    """The pod of a storage driver comes before its Node, so that the Node waits for it from the start."""
    meta = {
        "labels": {keys.CRITICAL_COMPONENT: "true"},
        "annotations": {f"{keys.WAIT_FOR_CSI_NODE_PREFIX}storage": _DRIVER},
    }
    yield Input(_object(PODS, NAMESPACE, f"driver-{name}", meta, spec={"nodeName": name, **_CRITICAL}), once=True)
    meta = {"annotations": {"kwok.x-k8s.io/node": "fake"}, "labels": {"kubernetes.io/hostname": name}}
    status = {"addresses": [{"type": "InternalIP", "address": "10.65.9.1"}]}
    yield Input(_object(NODES, "", name, meta, spec={"taints": [_TAINT]}, status=status), once=True)
    if not waits:
        drivers = [{"name": _DRIVER, "nodeID": name}]
        yield Input(_object(CSI_NODES, "", name, spec={"drivers": drivers}), once=True)


def _token_inputs(model: Model) -> Iterator[tuple[str, Input]]:
    for name, entry in model["tokens"].items():
        annotated = {keys.SERVICE_ACCOUNT_NAME: entry["account"], keys.SERVICE_ACCOUNT_NAMESPACE: SETTLED[0]}
        if entry["elsewhere"]:
            annotated |= {keys.TARGET_SECRET_NAME: f"{name}-target", keys.TARGET_SECRET_NAMESPACE: SETTLED[1]}
        meta = {"labels": {keys.PURPOSE: keys.PURPOSE_TOKEN_REQUESTOR}, "annotations": annotated}
        yield "source", Input(_object(SECRETS, WORK, name, meta))


# --- what has to come of it


def place_of_object(reference: str) -> Place:
    """Of an object of a ManagedResource."""
    kind, namespace, name = reference.split("/")
    return Place("target", MANAGED_KINDS[kind], namespace, name)


def expected(model: Model) -> Expected:
    found = Expected()
    services = dict(_services_of(model))
    for name, entry in model["managed"].items():
        for reference, version in entry["objects"].items():
            obj = manifest(reference, version)
            found.managed[place_of("target", MANAGED_KINDS[obj["kind"]], obj)] = obj, name
    for (namespace, name), (selector, entry) in services.items():
        for policy_namespace, policy, pods in _policies(namespace, name, selector, entry):
            found.policies[Place("target", NETWORK_POLICIES, policy_namespace, policy)] = pods
    used = {each for entry in model["referrers"].values() for each in entry["refers"]}
    for name in model["collectables"]:
        kind, namespace, collectable = name.split("/")
        found.collectables[Place("target", _COLLECTABLES[kind], namespace, collectable)] = name in used
    for name, entry in model["tokens"].items():
        place = Place("source", SECRETS, WORK, name)
        if entry["elsewhere"]:
            place = Place("target", SECRETS, SETTLED[1], f"{name}-target")
        found.tokens[place] = f"system:serviceaccount:{SETTLED[0]}:{entry['account']}"
    found.tainted = {name: entry["waits"] for name, entry in model["nodes"].items()}
    return found


_UNASKED: Object = {"port": 80, "clients": [], "alias": False, "world": False}


def _services_of(model: Model) -> Iterator[tuple[tuple[str, str], tuple[Object, Object]]]:
    """By namespace and name: their selectors, and what they ask for. Those of ManagedResources ask for nothing."""
    for name, entry in model["services"].items():
        namespace, _, service = name.partition("/")
        yield (namespace, service), ({"app": service}, entry)
    for entry in model["managed"].values():
        for reference, version in entry["objects"].items():
            kind, namespace, service = reference.split("/")
            if kind == "Service":
                yield (namespace, service), ({"app": service, "version": str(version)}, _UNASKED)


def _policies(namespace: str, name: str, selector: Object, entry: Object) -> Iterable[tuple[str, str, Object | None]]:
    """Namespace, name and pod selector; None: that of clients, which is not looked at."""
    pods = {"matchLabels": selector}
    stems = [f"{name}-tcp-{entry['port']}"]
    if entry["alias"]:
        stems.append(f"{name}-tcp-{_ALIAS_PORT}-via-{_ALIAS}")
    for stem in stems:
        yield namespace, f"ingress-to-{stem}", pods
        yield namespace, f"egress-to-{stem}", None
        for client in entry["clients"]:
            if client != namespace:
                yield namespace, f"ingress-to-{stem}-from-{client}", pods
                yield client, f"egress-to-{namespace}-{stem}", None
    if entry["world"]:
        yield namespace, f"ingress-to-{name}-from-world", pods


# --- what is there from the start


def namespaces() -> list[tuple[str, Object]]:
    targets = [_object(NAMESPACES, "", name, {"labels": NAMESPACE_LABELS}) for name in (*SETTLED, FLEETING)]
    return [("source", _object(NAMESPACES, "", WORK)), *(("target", each) for each in targets)]


def critical_daemon_set() -> Object:
    """A pod of it has to be ready on each Node."""
    marks = {keys.CRITICAL_COMPONENT: "true"}
    return objects.workload(DAEMON_SETS, "critical", namespace=NAMESPACE, labels=marks, pod_labels=marks, pod=_CRITICAL)


def foreign() -> dict[Place, Object]:
    """Objects that look more and more like ours, and are another client's."""
    managed_by, origin = "resources.gardener.cloud/managed-by", "resources.gardener.cloud/origin"
    labelled = {"labels": {managed_by: "gardener"}}
    apps = SETTLED[0]
    of_others: dict[str, list[Object]] = {
        "target": [
            _object(CONFIG_MAPS, apps, "foreign-plain", data={"k": "v"}),
            _object(CONFIG_MAPS, apps, "foreign-labelled", labelled),
            _object(CONFIG_MAPS, apps, "foreign-origin", {**labelled, "annotations": {origin: "elsewhere/mr-1"}}),
            _object(SECRETS, apps, "foreign-stranger", {**labelled, "annotations": {origin: f"{WORK}/stranger"}}),
            _object(SECRETS, apps, "foreign-kept", {"labels": {GARBAGE_COLLECTABLE: "false"}}, immutable=True),
            _object(SERVICE_ACCOUNTS, apps, "foreign"),
            _object(ROLES, apps, "foreign", labelled),
            _object(NETWORK_POLICIES, apps, "ingress-to-foreign-tcp-80", spec={"podSelector": {}}),
        ],
        "source": [
            _object(SECRETS, WORK, "foreign", {"labels": {keys.PURPOSE: "something-else"}}),
            _object(SECRETS, WORK, "foreign-class", data={"objects.yaml": _base64(b"")}),
            objects.managed_resource(f"{WORK}/foreign-class", spec={"class": "other"}),
        ],
    }
    return {
        place_of(cluster, _RESOURCES[obj["kind"]], obj): obj for cluster, found in of_others.items() for obj in found
    }


def digest(obj: Object) -> str:
    return hashlib.sha256(orjson.dumps(obj, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def decoded(text: str) -> str:
    """Of a value in a Secret; empty if it is none."""
    try:
        return base64.b64decode(text).decode()
    except ValueError:
        return ""
