"""projected-token-mount: mount a token that expires into pods whose ServiceAccount does not mount one.

It is for ServiceAccounts with `automountServiceAccountToken: false` whose pods use the API server nevertheless.
"""

from itertools import chain
from posixpath import normpath

from config.resource_manager.webhooks import ProjectedTokenMount
from gardener.keys import GROUP, PROJECTED_TOKEN_EXPIRATION
from kube.objects import Key, Object, annotations
from kube.resources import SERVICE_ACCOUNTS
from kube.runtime.cache import View
from webhooks.admission import Denied, Mutation, Refusal, Request
from webhooks.descriptor import Entry, MutatingWebhook
from webhooks.rules.registration import PODS, Instance, without
from webhooks.rules.shapes import METADATA, items, pod
from webhooks.rules.values import integer
from webhooks.state import SharedListers

_VOLUME = "kube-api-access-gardener"
_VOLUME_PREFIX = "kube-api-access-"
_MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"

_LIVE_READ_SECONDS = 5.0

_SHORTEST_SECONDS, _LONGEST_SECONDS = 600, 2**32
"""Bounds of the API server."""

_CONTAINER = {"volumeMounts": [{"mountPath": str}]}
_SPEC = {
    "serviceAccountName": str,
    "automountServiceAccountToken": bool,
    "volumes": [{"name": str}],
    "containers": [_CONTAINER],
    "initContainers": [_CONTAINER],
}
_SHAPE = pod({"metadata": METADATA, "spec": _SPEC})


def service_account(obj: Object) -> str:
    """Name of the ServiceAccount whose token may have to be mounted; empty if none."""
    name: str = (obj.get("spec") or {}).get("serviceAccountName") or ""
    return "" if name == "default" else name


def declines(obj: Object) -> bool:
    """Whether the pod refuses a token, or has one."""
    spec = obj.get("spec") or {}
    return (
        spec.get("automountServiceAccountToken") is False
        or any((volume.get("name") or "").startswith(_VOLUME_PREFIX) for volume in spec.get("volumes") or ())
        or not _without_mount(spec)
    )


def _without_mount(spec: Object) -> list[Object]:
    """Containers, except ephemeral ones, without a mount of their own at the path of the token."""
    containers = chain(spec.get("containers") or (), spec.get("initContainers") or ())
    return [each for each in containers if not any(map(_is_in_place, each.get("volumeMounts") or ()))]


def _is_in_place(mount: Object) -> bool:
    return normpath(mount.get("mountPath") or "") == _MOUNT_PATH


def expiration_seconds(obj: Object, default: int) -> int:
    """Return the requested lifetime of the token, or the default.

    Raises:
        Refusal: the annotation is invalid.
    """
    if PROJECTED_TOKEN_EXPIRATION not in annotations(obj):
        return default
    text = annotations(obj)[PROJECTED_TOKEN_EXPIRATION] or ""
    try:
        seconds = integer(text, function="ParseInt")
    except ValueError as error:
        raise Refusal(Denied(f'annotation "{PROJECTED_TOKEN_EXPIRATION}": {error}')) from None
    if not _SHORTEST_SECONDS <= seconds <= _LONGEST_SECONDS:
        bounds = f"must be between {_SHORTEST_SECONDS} and {_LONGEST_SECONDS} seconds"
        raise Refusal(Denied(f'annotation "{PROJECTED_TOKEN_EXPIRATION}": {bounds}, got {seconds}'))
    return seconds


def mount_token(obj: Object, seconds: int) -> None:
    """Mount the token into all containers that have room for it, like the API server."""
    spec = obj["spec"]
    items(spec, "volumes").append(_volume(seconds))
    for container in _without_mount(spec):
        items(container, "volumeMounts").append({"name": _VOLUME, "mountPath": _MOUNT_PATH, "readOnly": True})


def _volume(seconds: int) -> Object:
    namespace = {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}, "path": "namespace"}
    sources = [
        {"serviceAccountToken": {"expirationSeconds": seconds, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [namespace]}},
    ]
    return {"name": _VOLUME, "projected": {"defaultMode": 0o644, "sources": sources}}


def _automounts(account: Object) -> bool:
    return account.get("automountServiceAccountToken") is not False


VIEW = View(SERVICE_ACCOUNTS, _automounts)


class ServiceAccounts:
    """Knows whether pods of a ServiceAccount get a token from the API server itself."""

    def __init__(self, state: SharedListers) -> None:
        self._client = state.target.client
        self._lister = state.lister(VIEW)

    async def automount(self, namespace: str, name: str) -> bool:
        """Return whether the API server mounts a token.

        A ServiceAccount missing in the cache is read: pods often follow theirs at once.

        Raises:
            NotFound: there is none.
            KubeError: it is unreadable.
        """
        found = self._lister.store.get(Key(namespace, name))
        if found is None:
            live = await self._client.get(SERVICE_ACCOUNTS, Key(namespace, name), timeout=_LIVE_READ_SECONDS)
            self._lister.store.observe(live)
            found = _automounts(live)
        return found


def mutation(settings: ProjectedTokenMount, state: SharedListers) -> Mutation:
    accounts = ServiceAccounts(state)

    async def mutate(request: Request, obj: Object) -> None:
        _SHAPE.demand(obj)
        name = service_account(obj)
        if not name or await accounts.automount(request.namespace, name) or declines(obj):
            return
        mount_token(obj, expiration_seconds(obj, settings.expiration_seconds))

    return mutate


WEBHOOK = MutatingWebhook(
    name="projected-token-mount",
    path="/webhooks/mount-projected-service-account-token",
    settings=ProjectedTokenMount,
    mutation=mutation,
    entries=(
        Entry(
            rules=(PODS,),
            namespaces=Instance.namespaces,
            objects=lambda instance: without(f"projected-token-mount.{GROUP}/skip") & instance.not_ours(),
        ),
    ),
)
