"""The Cluster object: everything that extensions can read about a Shoot."""

from gardener.api.extensions import CLUSTERS
from gardener.api.garden import CLOUD_PROFILES, SEEDS, SHOOTS
from kube.objects import Object, metadata
from kube.resources import Resource


def cluster(technical_id: str, *, shoot: Object, seed: Object, profile: Object) -> Object:
    whole = {
        "cloudProfile": _whole(CLOUD_PROFILES, profile),
        "seed": _whole(SEEDS, seed),
        "shoot": shown(shoot),
    }
    return {**CLUSTERS.type_meta, "metadata": {"name": technical_id}, "spec": whole}


def shown(shoot: Object) -> Object:
    return _whole(SHOOTS, shoot)


def _whole(resource: Resource, obj: Object) -> Object:
    meta = {name: value for name, value in metadata(obj).items() if name != "managedFields"}
    return {**obj, **resource.type_meta, "metadata": meta}
