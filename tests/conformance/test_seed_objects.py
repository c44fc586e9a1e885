"""The objects that the gardenlet writes into a seed are those of the original, but for what is listed here.

Both sides are created in a dry run first, unless recorded as they were stored, so that they have the defaults of an
API server.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict

import pytest

from agent.gardenlet.components import cluster_identity, gardenlet_autoscaling, namespaces, resource_manager, system
from config.resource_manager import decode
from conformance.seed_objects import (
    Name,
    by_name,
    differences,
    normal,
    recorded_managed_resources,
    recorded_objects,
    unhashed,
    valid,
)
from devcluster.cluster import Cluster
from gardener.managed_resource.decode import decode_secrets
from gardener.managed_resource.plan import data_of
from kit.objects import KINDS
from kit.world import Place
from kube.objects import Object, metadata
from localprocesses.pki import Authority

ZONES = ("0",)
NOT_SERVED = frozenset({"Namespace", "VerticalPodAutoscaler", "ServiceMonitor"})
"""Compared as they are: their API is not there, or the manifest is not all that is stored."""
Stored = Callable[[Object], Object]

_NAME = resource_manager.NAME
_CONFIG = Name("ConfigMap", f"{_NAME}-<hash>")
_CHECKSUM = "a digest of the pod template, which is computed in another way"
_IMAGE = "the image is this project's"
_MADE = "the API server sets it when the Namespace is made; only labels and annotations of it are written"
_MEMORY = "what a process of this project uses"

DIFFERENCES: Mapping[Name, Mapping[str, str]] = {
    Name("Namespace", "garden"): {"metadata/labels/kubernetes.io/metadata.name": _MADE, "spec": _MADE},
    Name("Namespace", "kube-system"): {"metadata/labels/kubernetes.io/metadata.name": _MADE, "spec": _MADE},
    _CONFIG: {"data/config.yaml": "what has its default is left out: both are the same configuration, see below"},
    Name("Deployment", _NAME): {
        "metadata/annotations/deployment.kubernetes.io/revision": "the controller of Deployments sets it",
        "spec/template/metadata/labels/checksum/pod-template": _CHECKSUM,
        "spec/template/spec/containers/0/image": _IMAGE,
        "spec/template/spec/containers/0/resources/requests/memory": _MEMORY,
        "spec/template/spec/topologySpreadConstraints/0/labelSelector/matchLabels/checksum/pod-template": _CHECKSUM,
    },
    Name("ServiceMonitor", f"seed-{_NAME}"): {"spec": "only its metadata are recorded"},
    Name("VerticalPodAutoscaler", "gardenlet-vpa"): {
        "spec/resourcePolicy/containerPolicies/0/minAllowed/memory": _MEMORY
    },
}
"""Object -> path -> reason."""

COMPONENTS: Mapping[str, Callable[[], list[Object]]] = {
    cluster_identity.NAME: lambda: cluster_identity.objects("uid"),
    system.NAME: lambda: system.objects(system.Values()),
}
"""Those that are ManagedResources."""


def written() -> Iterator[Object]:
    """What the gardenlet writes itself."""
    yield from namespaces.objects(zones=ZONES)
    yield from gardenlet_autoscaling.objects()
    bundle = Authority.create("ca-seed").bundle.decode()
    values = resource_manager.Values(
        image="resource-manager", server_secret=f"{_NAME}-server-12345678", ca_bundle=bundle, zones=ZONES
    )
    yield from resource_manager.objects(values)


@pytest.fixture
def stored(cluster: Cluster, namespace: str) -> Stored:
    """How an API server would store an object."""
    place = Place(cluster, namespace)

    def of(obj: Object) -> Object:
        if obj["kind"] in NOT_SERVED or obj["kind"] not in KINDS:
            return obj
        meta = metadata(obj)
        if "namespace" not in meta:
            return place.dry_run(obj)
        answer = place.dry_run({**obj, "metadata": {**meta, "namespace": namespace}})
        return {**answer, "metadata": {**answer["metadata"], "namespace": meta["namespace"]}}

    return of


def found_differences(ours: Mapping[Name, Object], recorded: Mapping[Name, Object]) -> dict[Name, set[str]]:
    """By object, the paths at which ours differ."""
    assert not ours.keys() - recorded.keys()
    found = {name: {path for path, *_ in differences(obj, recorded[name])} for name, obj in ours.items()}
    return {name: paths for name, paths in found.items() if paths}


def expected(names: Iterable[Name]) -> dict[Name, set[str]]:
    return {name: set(DIFFERENCES[name]) for name in names if name in DIFFERENCES}


def test_what_the_gardenlet_writes_itself(stored: Stored) -> None:
    ours = by_name(stored(obj) for obj in written())
    assert found_differences(ours, recorded_objects()) == expected(ours)


def test_the_resource_manager_is_configured_alike() -> None:
    """Save for the namespace of machines, which nothing reads while the approver is off."""
    ours, recorded = (
        asdict(decode(objects[_CONFIG]["data"]["config.yaml"]).config)
        for objects in (by_name(written()), recorded_objects())
    )
    paths = [path for path, *_ in differences(ours, recorded)]
    assert paths == ["controllers/csr_approver/machine_namespace"]


@pytest.mark.parametrize("name", COMPONENTS)
def test_a_managed_resource_and_what_it_has(name: str, stored: Stored) -> None:
    secret, managed = COMPONENTS[name]()
    recorded = recorded_managed_resources()[name]
    (its_secret,) = recorded["secret"]
    assert unhashed(secret["metadata"]["name"]) == unhashed(its_secret["metadata"]["name"])
    assert (secret["type"], secret["immutable"], [*secret["data"]]) == (
        its_secret["type"],
        its_secret["immutable"],
        its_secret["keys"],
    )
    assert secret["metadata"]["labels"] == its_secret["metadata"]["labels"]

    meta = {**recorded["metadata"], "name": name, "namespace": recorded["namespace"]}
    del meta["finalizers"]  # the resource manager's
    theirs = normal({**managed, "metadata": meta, "spec": recorded["spec"]})
    assert not [*differences(normal(managed), theirs)]

    contents = decode_secrets([data_of(secret)]).objects
    ours = by_name(stored(item.object) for item in contents)
    assert found_differences(ours, by_name(stored(valid(obj)) for obj in recorded["objects"])) == expected(ours)
    assert len(ours) == len(recorded["objects"])
