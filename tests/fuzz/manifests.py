"""The data of a Secret that a ManagedResource refers to, from its bytes to the bodies of requests.

The lowest two bits of the first byte state what the key is called, so whether it is compressed. Whatever is wrong becomes
an error of one object or document: nothing is raised, and nothing unfolds to more than the limits.
"""

import orjson

from gardener.managed_resource import plan
from gardener.managed_resource.decode import LARGEST_OBJECT, Limits, decode_secrets, unfolded_size
from gardener.managed_resource.merge import MergeError, merge
from gardener.managed_resource.plan import unrestricted
from gardener.managed_resource.remedies import unserved_error
from kit.webhooks.mutating import at_once
from kube.differences import needs_update
from kube.errors import KindNotServed
from kube.objects import Key, Object, group_of
from kube.resources import DEPLOYMENTS, NAMESPACES, Resource
from kube.runtime.discovery import find_all

_SECRET = Key("ns", "bundle")
_NAMES = ("m.yaml", "m.json", "m.yaml.br", "m.br")
_LIMITS = Limits(total_bytes=1 << 18, values=5_000, documents=100)
_BASIS = plan.Basis(injected_labels=(("a", "b"),), secrets=())
_LONGEST_ERROR = 2_000

_CONTAINER = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
_TEMPLATE = {
    "metadata": {"labels": {"app": "a"}, "annotations": {"kubectl.kubernetes.io/restartedAt": "now"}},
    "spec": {"containers": [_CONTAINER], "initContainers": [_CONTAINER]},
}
_LIVE: Object = {
    "metadata": {"name": "n", "namespace": "ns", "uid": "u", "resourceVersion": "1", "labels": {"a": "b"}},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "a"}},
        "template": _TEMPLATE,
        "jobTemplate": {"spec": {"template": _TEMPLATE}},
        "volumeClaimTemplates": [{"metadata": {"name": "v"}, "spec": {}}],
        "type": "NodePort",
        "clusterIP": "10.0.0.1",
        "clusterIPs": ["10.0.0.1"],
        "ports": [{"name": "p", "port": 80, "nodePort": 30000, "protocol": "TCP"}],
        "claimRef": {"name": "c"},
        "volumeName": "v",
        "caBundle": "Y2E=",
        "conversion": {"strategy": "Webhook", "webhook": {"clientConfig": {"caBundle": "Y2E="}}},
    },
    "secrets": [{"name": "s"}],
    "imagePullSecrets": [{"name": "s"}],
    "webhooks": [{"name": "w", "clientConfig": {"caBundle": "Y2E="}}],
    "status": {"replicas": 2},
}
"""Something of every kind that has rules for what is kept."""


def target(data: bytes) -> None:
    contents = [(_SECRET, {_NAMES[data[0] % 4 if data else 0]: data[1:]})]
    assert unfolded_size([values for _, values in contents], limit=_LIMITS.total_bytes) <= _LIMITS.total_bytes
    decoded = decode_secrets(contents, limits=_LIMITS)
    assert len(decoded.objects) + len(decoded.errors) <= _LIMITS.documents + 1
    found = at_once(find_all(_Discovery(), plan.kinds_of(decoded), explain=unserved_error))  # type: ignore[arg-type] # all that is used of it
    made = plan.plan(
        _BASIS, contents, decoded, found, labels={"a": "b"}, only_workloads=False, restriction=unrestricted
    )
    for text in (*made.decode_errors, *(wanted.problem for wanted in made.wanted())):
        # They name kinds, fields and the like, twice at most, and nothing else.
        assert len(text) < _LONGEST_ERROR + 2 * len(data)
    for wanted in made.wanted():
        assert len(wanted.manifest) <= LARGEST_OBJECT
        if not wanted.problem:
            _apply(wanted.object())


class _Discovery:
    """All groups and kinds are served but some."""

    async def served(self) -> list[Resource]:
        return [DEPLOYMENTS, NAMESPACES]

    async def find(self, api_version: str, kind: str) -> Resource:
        group = group_of(api_version)
        if group == "nowhere":
            raise KindNotServed(api_version, kind)
        version = api_version.rpartition("/")[2]
        return Resource(group, version, kind, kind.lower(), namespaced=kind != "Namespace")


def _apply(manifest: Object) -> None:
    identity = {"apiVersion": manifest.get("apiVersion"), "kind": manifest.get("kind")}
    for live in (None, {**identity, **_LIVE}):
        try:
            body = merge(manifest, live, origin="ns/mr", horizontally_scaled=True, vertically_scaled=True)
        except MergeError:
            continue
        orjson.dumps(body)
        if live is not None:
            needs_update(body, live)
