"""projected-token-mount: pods get a token that expires, where their ServiceAccount mounts none by itself.

It is for ServiceAccounts with `automountServiceAccountToken: false` whose pods talk to the API server nevertheless.
"""

from itertools import chain

from config.schema_webhooks import ProjectedTokenMount
from kube.objects import Object, annotations
from webhooks.admission import Denied, Handler, Mutation, Refusal, Request
from webhooks.facts import Facts
from webhooks.generic import defaulter
from webhooks.handlers.values import integer
from webhooks.shapes import Fields, Metadata, items, pod

NAME = "projected-token-mount"
PATH = "/webhooks/mount-projected-service-account-token"

EXPIRATION = "projected-token-mount.resources.gardener.cloud/expiration-seconds"

_VOLUME = "kube-api-access-gardener"
_VOLUME_PREFIX = "kube-api-access-"
_MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"

_SHORTEST_SECONDS, _LONGEST_SECONDS = 600, 2**32
"""What the API server accepts."""


class _Volume(Fields):
    name: str | None = None


class _Container(Fields):
    volume_mounts: list[Object] | None = None


class _Spec(Fields):
    service_account_name: str | None = None
    automount_service_account_token: bool | None = None
    volumes: list[_Volume] | None = None
    containers: list[_Container] | None = None
    init_containers: list[_Container] | None = None


class _Pod(Fields):
    metadata: Metadata | None = None
    spec: _Spec | None = None


_SHAPE = pod(_Pod)


def service_account(obj: Object) -> str:
    """The name of the one whose token may have to be mounted; empty: none."""
    name: str = (obj.get("spec") or {}).get("serviceAccountName") or ""
    return "" if name == "default" else name


def declines(obj: Object) -> bool:
    """Whether the pod wants no token, or has one."""
    spec = obj.get("spec") or {}
    return spec.get("automountServiceAccountToken") is False or any(
        (volume.get("name") or "").startswith(_VOLUME_PREFIX) for volume in spec.get("volumes") or ()
    )


def expiration_seconds(obj: Object, default: int) -> int:
    """Raises: Refusal: the pod asks for what can't be."""
    if EXPIRATION not in annotations(obj):
        return default
    text = annotations(obj)[EXPIRATION] or ""
    try:
        seconds = integer(text, function="ParseInt")
    except ValueError as error:
        raise Refusal(Denied(f'annotation "{EXPIRATION}": {error}')) from None
    if not _SHORTEST_SECONDS <= seconds <= _LONGEST_SECONDS:
        bounds = f"must be between {_SHORTEST_SECONDS} and {_LONGEST_SECONDS} seconds"
        raise Refusal(Denied(f'annotation "{EXPIRATION}": {bounds}, got {seconds}'))
    return seconds


def mount_token(obj: Object, seconds: int) -> None:
    """Into all containers but ephemeral ones, as the API server would do it."""
    spec = obj["spec"]
    items(spec, "volumes").append(_volume(seconds))
    for container in chain(spec.get("containers") or (), spec.get("initContainers") or ()):
        items(container, "volumeMounts").append({"name": _VOLUME, "mountPath": _MOUNT_PATH, "readOnly": True})


def _volume(seconds: int) -> Object:
    namespace = {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}, "path": "namespace"}
    sources = [
        {"serviceAccountToken": {"expirationSeconds": seconds, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [namespace]}},
    ]
    return {"name": _VOLUME, "projected": {"defaultMode": 0o644, "sources": sources}}


def mutation(settings: ProjectedTokenMount, facts: Facts) -> Mutation:
    async def mutate(request: Request, obj: Object) -> None:
        _SHAPE.demand(obj)
        name = service_account(obj)
        if not name or await facts.automounts(request.namespace, name) or declines(obj):
            return
        mount_token(obj, expiration_seconds(obj, settings.expiration_seconds))

    return mutate


def handler(settings: ProjectedTokenMount, facts: Facts) -> Handler:
    return defaulter(mutation(settings, facts))
