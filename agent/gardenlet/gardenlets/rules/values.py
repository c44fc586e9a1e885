"""The values for the chart of a gardenlet, and the configuration file that it gets."""

from typing import Any

import yaml

from kube.objects import Object, mapping, mappings, text
from kube.paths import mapping_at, with_value
from kube.yaml import Dumper

CONNECTION = "gardenClientConnection"
BOOTSTRAP, SECRET = "bootstrapKubeconfig", "kubeconfigSecret"
_HOST = "KUBERNETES_SERVICE_HOST"
_OF_PARENT = (
    (CONNECTION, "kubeconfig"),
    (CONNECTION, BOOTSTRAP),
    ("seedClientConnection", "kubeconfig"),
    ("seedConfig",),
)
"""What of a parent's configuration is its own: credentials, and what they lead to."""
_NAMED_OTHERWISE = {"componentImageVectorOverwrite": "componentImageVectorOverwrites"}
"""Fields of objects, and what the values of charts are called."""


def overlaid(below: Any, above: Any) -> Any:
    """Mappings are joined, at any depth; of all else the upper one counts as a whole."""
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    return {
        **below,
        **{name: overlaid(below[name], value) if name in below else value for name, value in above.items()},
    }


def without(obj: Object, path: tuple[str, ...]) -> Object:
    """The object without what is at a path."""
    name, *rest = path
    if name not in obj:
        return obj
    if rest:
        return {**obj, name: without(mapping(obj[name]), tuple(rest))}
    return {each: value for each, value in obj.items() if each != name}


def inherited(parent: Object) -> Object:
    """What a child may have of its parent's configuration."""
    for path in _OF_PARENT:
        parent = without(parent, path)
    return parent


def named(config: Object, name: str) -> Object:
    """The configuration with the name of its Seed."""
    return {**config, "seedConfig": with_name(mapping(config.get("seedConfig")), name)}


def with_name(template: Object, name: str) -> Object:
    return {**template, "metadata": {**mapping(template.get("metadata")), "name": name}}


def with_bootstrap(config: Object, *, secret: Object, bootstrap: Object | None) -> Object:
    """Where its kubeconfig is kept, and the one with which it asks for it. Args: bootstrap: None: it has one."""
    config = with_value(config, (CONNECTION, SECRET), secret)
    config = without(config, (CONNECTION, BOOTSTRAP))
    return config if bootstrap is None else with_value(config, (CONNECTION, BOOTSTRAP), bootstrap)


def without_bootstrap(config: Object) -> Object:
    return without(without(config, (CONNECTION, BOOTSTRAP)), (CONNECTION, SECRET))


def reference(config: Object, field: str, default: str) -> Object:
    """The Secret that a field of the connection names, or the usual one."""
    found = mapping_at(config, CONNECTION, field)
    return {"name": text(found.get("name")) or default, "namespace": text(found.get("namespace")) or "garden"}


def with_host(deployment: Object, host: str) -> Object:
    """With the address of the API server, where a gardenlet in the cluster finds it, unless it says another one."""
    env = mappings(deployment.get("env"))
    if not host or any(each.get("name") == _HOST for each in env):
        return deployment
    return {**deployment, "env": [*env, {"name": _HOST, "value": host}]}


def with_image(deployment: Object, image: Object) -> Object:
    """With this image, as far as the deployment does not name another one."""
    own = mapping(deployment.get("image"))
    if own.get("repository") or own.get("tag"):
        image = without(image, ("digest",))
    return {**deployment, "image": {**image, **own}} if image or own else deployment


def values(deployment: Object, config: Object, *, kubeconfig: str = "") -> Object:
    """Of a chart. Args: kubeconfig: for asking the garden for a certificate; empty: none."""
    found = {_NAMED_OTHERWISE.get(name, name): value for name, value in deployment.items() if name != "helm"}
    whole = with_value(config, (CONNECTION, BOOTSTRAP, "kubeconfig"), kubeconfig) if kubeconfig else config
    return {**found, "config": whole, "configText": written(config)}


def written(config: Object) -> str:
    """The configuration file: what is in it is kept as it is, known or not."""
    return yaml.dump(config, Dumper=Dumper, sort_keys=True, width=1 << 20)
