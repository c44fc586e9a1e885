"""Values for the chart of a gardenlet, and its configuration file."""

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
"""Parts of a parent's configuration that a child does not inherit: credentials and clusters."""
_NAMED_OTHERWISE = {"componentImageVectorOverwrite": "componentImageVectorOverwrites"}
"""Fields of objects that have another name in the values of charts."""


def overlaid(below: Any, above: Any) -> Any:
    """Merge mappings at all depths; any other value of `above` replaces the one of `below`."""
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    return {
        **below,
        **{name: overlaid(below[name], value) if name in below else value for name, value in above.items()},
    }


def without(obj: Object, path: tuple[str, ...]) -> Object:
    """Return the object without the field at a path."""
    name, *rest = path
    if name not in obj:
        return obj
    if rest:
        return {**obj, name: without(mapping(obj[name]), tuple(rest))}
    return {each: value for each, value in obj.items() if each != name}


def inherited(parent: Object) -> Object:
    """Parts of the parent's configuration that a child inherits."""
    for path in _OF_PARENT:
        parent = without(parent, path)
    return parent


def named(config: Object, name: str) -> Object:
    """Configuration with the name of its Seed."""
    return {**config, "seedConfig": with_name(mapping(config.get("seedConfig")), name)}


def with_name(template: Object, name: str) -> Object:
    return {**template, "metadata": {**mapping(template.get("metadata")), "name": name}}


def with_bootstrap(config: Object, *, secret: Object, bootstrap: Object | None) -> Object:
    """Set the Secrets with the kubeconfig and the bootstrap kubeconfig; `bootstrap` is None if it has a kubeconfig."""
    config = with_value(config, (CONNECTION, SECRET), secret)
    config = without(config, (CONNECTION, BOOTSTRAP))
    return config if bootstrap is None else with_value(config, (CONNECTION, BOOTSTRAP), bootstrap)


def without_bootstrap(config: Object) -> Object:
    return without(without(config, (CONNECTION, BOOTSTRAP)), (CONNECTION, SECRET))


def reference(config: Object, field: str, default: str) -> Object:
    """Secret in a field of the connection, or the default one."""
    found = mapping_at(config, CONNECTION, field)
    return {"name": text(found.get("name")) or default, "namespace": text(found.get("namespace")) or "garden"}


def with_host(deployment: Object, host: str) -> Object:
    """Set the API server address for gardenlets in the cluster, unless the deployment sets it."""
    env = mappings(deployment.get("env"))
    if not host or any(each.get("name") == _HOST for each in env):
        return deployment
    return {**deployment, "env": [*env, {"name": _HOST, "value": host}]}


def with_image(deployment: Object, image: Object) -> Object:
    """Set the image, except for parts that the deployment sets."""
    own = mapping(deployment.get("image"))
    if own.get("repository") or own.get("tag"):
        image = without(image, ("digest",))
    return {**deployment, "image": {**image, **own}} if image or own else deployment


def values(deployment: Object, config: Object, *, kubeconfig: str = "") -> Object:
    """Values of a chart; `kubeconfig` is for requesting a certificate, empty if not needed."""
    found = {_NAMED_OTHERWISE.get(name, name): value for name, value in deployment.items() if name != "helm"}
    whole = with_value(config, (CONNECTION, BOOTSTRAP, "kubeconfig"), kubeconfig) if kubeconfig else config
    return {**found, "config": whole, "configText": written(config)}


def written(config: Object) -> str:
    """Configuration file with all fields, known or not."""
    return yaml.dump(config, Dumper=Dumper, sort_keys=True, width=1 << 20)
