"""Images that replace the configured ones: in files named by environment variables.

    images:
    - name: pause-container
      repository: registry.example.com/pause
      tag: "3.10"

An entry without `tag` keeps the tag of the configured image, so that a mirror needs only repositories. Image names of
the original are accepted. A gardenlet passes both files on to those that it deploys; the one for components is only
passed on.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from config.gardenlet.schema import KUBERNETES_PROGRAMS, Images
from kube.files import read_bounded
from kube.objects import Object, mapping, mappings, text
from kube.yaml import Budget, DialectError, load
from process.configuration.fields import camel_case

VARIABLE, COMPONENTS_VARIABLE = "IMAGEVECTOR_OVERWRITE", "IMAGEVECTOR_OVERWRITE_COMPONENTS"
_LARGEST, _MOST_VALUES = 1 << 20, 100_000
_FIELDS: Mapping[str, str] = {
    "configmap-reloader": "config_reloader",
    "etcd-druid": "etcd_druid",
    "ext-authz-server": "vpn_authorization_server",
    "gardener-resource-manager": "resource_manager",
    "ingress-default-backend": "ingress_default_backend",
    "istio-istiod": "istio_discovery",
    "istio-proxy": "istio_proxy",
    "kube-state-metrics": "kube_state_metrics",
    "nginx-ingress-controller": "nginx_ingress_controller",
    "nginx-ingress-controller-seed": "nginx_ingress_controller",
    "pause-container": "pause",
    "plutono": "plutono",
    "plutono-dashboard-refresher": "dashboard_refresher",
    "plutono-data-refresher": "dashboard_refresher",
    "prometheus": "prometheus",
    "prometheus-operator": "prometheus_operator",
    "vpa-admission-controller": "vpa_admission_controller",
    "vpa-recommender": "vpa_recommender",
    "vpa-updater": "vpa_updater",
}
_WORKERS: Mapping[str, str] = {
    "apiserver-proxy-sidecar": "apiserver-proxy",
    "envoy-proxy": "envoy",
    "pause-container": "pause",
    "vpn-client": "vpn-shoot-client",
    "vpn-server": "vpn-seed-server",
}
_VERSIONED = frozenset({"hyperkube"})
"""Images whose tag is the version of Kubernetes, like its programs."""
_CONDITIONS = ("targetVersion", "runtimeVersion", "architectures")


def names(for_workers: Collection[str]) -> frozenset[str]:
    """Names of entries that a gardenlet uses."""
    return frozenset({*_FIELDS, *_WORKERS, *KUBERNETES_PROGRAMS, *for_workers})


def versioned() -> frozenset[str]:
    """Names of entries whose tag is the version of Kubernetes."""
    return _VERSIONED | frozenset(KUBERNETES_PROGRAMS)


def unset(given: Collection[str], for_workers: Collection[str]) -> list[str]:
    """Images of the configuration that a file with entries of the given names leaves unset."""
    fields = {field for name, field in _FIELDS.items() if name in given}
    workers = {_WORKERS.get(name, name) for name in given}
    lacking = [f"images.{camel_case(field)}" for field in dict.fromkeys(_FIELDS.values()) if field not in fields]
    lacking += [f"images.workers.{name}" for name in for_workers if name not in workers]
    return lacking + [f"images.programs.{name}" for name in KUBERNETES_PROGRAMS if name not in given]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overwrites:
    """Contents of the files.

    Attributes:
        images: the file with images; empty if none.
        components: the file with images that components deploy themselves; empty if none.
    """

    images: str = ""
    components: str = ""

    @property
    def values(self) -> Object:
        """Values for the chart of a gardenlet."""
        found = {"imageVectorOverwrite": self.images, "componentImageVectorOverwrites": self.components}
        return {name: content for name, content in found.items() if content}


def overwrites(environment: Mapping[str, str]) -> Overwrites:
    """Read the files.

    Raises:
        ValueError: a file can't be read.
    """
    return Overwrites(images=_read(environment, VARIABLE), components=_read(environment, COMPONENTS_VARIABLE))


def _read(environment: Mapping[str, str], variable: str) -> str:
    if not (path := environment.get(variable, "")):
        return ""
    try:
        return read_bounded(Path(path), most=_LARGEST).decode()
    except (OSError, ValueError) as error:
        raise ValueError(f"the file {path}, which {variable} names, can't be read: {error}") from error


def overwritten(
    images: Images, content: str, *, for_workers: Callable[[], Collection[str]]
) -> tuple[Images, list[str]]:
    """Return the images to use, and the ignored entries of the file with the reasons.

    `for_workers` returns the names of images for Shoots with workers; it needs memory, so it is called only if
    necessary.

    Raises:
        ValueError: the file is invalid, or the configuration has an unknown image.
    """
    if images.workers and (unknown := sorted(images.workers.keys() - set(for_workers()))):
        raise ValueError(
            f"images.workers in the configuration has {', '.join(unknown)}, which is unknown; remove it, or correct "
            f"its name to one of {', '.join(for_workers())}"
        )
    ignored: list[str] = []
    for entry in _entries(content):
        name = text(entry.get("name"))
        if conditions := [each for each in _CONDITIONS if entry.get(each)]:
            ignored.append(f"{name}: no image without {', '.join(conditions)}; add one for all versions")
        elif (found := _with(images, name, entry, for_workers())) is None:
            ignored.append(f"{name}: no component uses this image")
        else:
            images = found
    return images, ignored


def _entries(content: str) -> Iterator[Object]:
    try:
        document = load(content, budget=Budget(_MOST_VALUES)) if content else None
    except DialectError as error:
        raise ValueError(f"the file in {VARIABLE} is not valid YAML: {error}") from error
    for entry in mappings(mapping(document).get("images")):
        if not (text(entry.get("name")) and (text(entry.get("repository")) or text(entry.get("ref")))):
            raise ValueError(f"an entry of images in the file in {VARIABLE} lacks name or repository; add it")
        yield entry


def _with(images: Images, name: str, entry: Object, for_workers: Collection[str]) -> Images | None:
    """Return the images with an overwritten one; None if there is no such image."""
    if name in KUBERNETES_PROGRAMS:
        return replace(images, programs={**images.programs, name: _repository(entry)})
    worker, field = _WORKERS.get(name, name if name in for_workers else None), _FIELDS.get(name)
    if worker is None and field is None:
        return None
    if field is not None:
        changed: Object = {field: _image(entry, getattr(images, field))}
        images = replace(images, **changed)
    if worker is not None:
        wanted = _repository(entry) if worker in _VERSIONED else _image(entry, images.workers.get(worker, ""))
        images = replace(images, workers={**images.workers, worker: wanted})
    return images


def _repository(entry: Object) -> str:
    return text(image_of(_named(entry))["repository"])


def _image(entry: Object, present: str) -> str:
    named = _named(entry)
    if len(image_of(named)) > 1:
        return named
    return f"{named}{present.removeprefix(text(image_of(present)['repository']))}"


def _named(entry: Object) -> str:
    if ref := text(entry.get("ref")):
        return ref
    repository, tag = text(entry.get("repository")), text(entry.get("tag"))
    return f"{repository}{'@' if ':' in tag else ':'}{tag}" if tag else repository


def image_of(written: str) -> Object:
    """Image as values of a chart; `written` is the reference in a container."""
    name, _, digest = written.partition("@")
    repository, colon, tag = name.rpartition(":")
    if not colon or "/" in tag:
        repository, tag = name, ""
    return {"repository": repository, **({"tag": tag} if tag else {}), **({"digest": digest} if digest else {})}
