"""The Cluster object: all that extensions get to know of a Shoot."""

from gardener import keys
from gardener.api.extensions import CLUSTERS
from gardener.api.garden import CLOUD_PROFILES, SEEDS, SHOOTS
from kube.objects import Object, metadata
from kube.resources import Resource


def cluster(technical_id: str, *, shoot: Object, seed: Object, profile: Object, token_kubeconfig: str = "") -> Object:
    """Args: token_kubeconfig: name of the Secret that is mounted by what runs in the Shoot's namespace, if known."""
    meta: Object = {"name": technical_id}
    if token_kubeconfig:
        meta["annotations"] = {keys.GENERIC_TOKEN_KUBECONFIG: token_kubeconfig}
    whole = {
        "cloudProfile": _whole(CLOUD_PROFILES, profile),
        "seed": _whole(SEEDS, seed),
        "shoot": shown(shoot),
    }
    return {**CLUSTERS.type_meta, "metadata": meta, "spec": whole}


def shown(shoot: Object) -> Object:
    return _whole(SHOOTS, shoot)


def _whole(resource: Resource, obj: Object) -> Object:
    meta = {name: value for name, value in metadata(obj).items() if name != "managedFields"}
    return {**obj, **resource.type_meta, "metadata": meta}
