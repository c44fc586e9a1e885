"""The charts for Helm, written from the objects that kustomize makes of overlays, so that there is one source of both.

Settings for users become values: image, replicas, resources, the configuration file. If a chart has several programs,
each has its own values under its name, such as `scheduler`. The namespace is the release's, or `garden`, which the
programs of a garden can't do without. Everything else is as in the overlays. The CustomResourceDefinitions are in
`crds/`: Helm installs them, and neither updates nor deletes them.

The chart of the gardenlet is the one that gardenlets install for ManagedSeeds, with the image of the release.
"""

import copy
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

_NAMESPACE = "{{ .Release.Namespace }}"
_IMAGE = (
    "{{ .Values.image.repository }}"
    "{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag }}{{ end }}"
)
_CONFIG_FILE = "config.yaml"
_GUARD = (
    '{{{{- if ne .Release.Namespace "{0}" }}}}'
    '{{{{ fail "the programs of a garden run in the namespace {0}; install with --namespace {0}" }}}}{{{{ end }}}}\n'
)
_IMAGE_VALUES = """\
image:
  repository: {repository}
  tag: {tag}
  digest: "{digest}" # such as sha256:..., in place of the tag
"""
_VALUES = """\
replicas: {replicas}
resources:
{resources}
# The configuration file, see docs/configuration.md: --set-file {path}=config.yaml. It may use Helm's templates.
config: |
{config}
"""


class ChartError(Exception):
    """The overlay has changed, so that the chart would differ from it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart.

    Attributes:
        name: such as `garden`.
        description: for users of Helm.
        overlays: names of the overlays with its objects.
        fixed: namespace that the programs need; empty if any will do.
    """

    name: str
    description: str
    overlays: tuple[str, ...]
    fixed: str = ""


RESOURCE_MANAGER = Chart(
    name="resource-manager",
    description="Applies ManagedResources and keeps what they contain",
    overlays=("standalone",),
)
CHARTS = (
    RESOURCE_MANAGER,
    Chart(name="garden", description="The garden API and its admission server", overlays=("garden",), fixed="garden"),
    Chart(
        name="garden-controllers",
        description="Controller manager and scheduler of a garden",
        overlays=("controller-manager-seed-roles", "scheduler"),
        fixed="garden",
    ),
)
GARDENLET = "gardenlet"
"""Name of the chart that is a directory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """Image of a release. Attributes: digest: empty if no registry has the image: then the tag is named."""

    repository: str
    tag: str
    digest: str


def chart(kind: Chart, objects: Iterable[dict[str, Any]], *, version: str, image: Image) -> dict[str, bytes]:
    """Files by their paths, which begin with the name of the chart.

    Args:
        kind: which chart.
        objects: objects that kustomize makes of the overlays; a repeated one counts once.
        version: version of the chart and of the program in it, such as `0.1.0`.
        image: image of the programs.

    Raises:
        ChartError: the overlays do not fit the values of the chart.
    """
    known: list[dict[str, Any]] = []
    for each in objects:
        if each not in known:
            known.append(each)
    definitions = [each for each in known if each["kind"] == "CustomResourceDefinition"]
    template = _Template(known, fixed=kind.fixed)
    # Helm creates the namespace of the release.
    own = {"CustomResourceDefinition": None, "Namespace": template.namespace}
    others = [
        template.of(copy.deepcopy(each))
        for each in known
        if each["kind"] not in own or own[each["kind"]] not in {None, each["metadata"]["name"]}
    ]
    about = {
        "apiVersion": "v2",
        "name": kind.name,
        "description": kind.description,
        "type": "application",
        "version": version,
        "appVersion": image.tag,
        "kubeVersion": ">=1.28.0-0",
    }
    guard = _GUARD.format(kind.fixed) if kind.fixed else ""
    files = {
        "Chart.yaml": yaml.safe_dump(about, sort_keys=False),
        "values.yaml": _image_values(image) + template.values(),
        "templates/objects.yaml": guard + template.text(yaml.safe_dump_all(others, sort_keys=False)),
    }
    if definitions:
        files["crds/definitions.yaml"] = yaml.dump_all(definitions, Dumper=yaml.CSafeDumper, sort_keys=False)
    return {f"{kind.name}/{path}": content.encode() for path, content in files.items()}


def gardenlet_chart(directory: Path, *, version: str, image: Image) -> dict[str, bytes]:
    """Files of the chart of the gardenlet by their paths. Args: directory: the chart.

    Raises:
        ChartError: the chart has no version or image that could be set.
    """
    set_once = {
        "Chart.yaml": [(r"^version: .*$", f"version: {version}\nappVersion: {image.tag}")],
        "values.yaml": [
            (r'^  repository: "".*$', f"  repository: {image.repository}"),
            (r'^  tag: ""$', f"  tag: {image.tag}"),
            (r'^  digest: ""$', f'  digest: "{image.digest}"'),
        ],
    }
    files = {}
    for path in sorted(directory.rglob("*")):
        if not path.is_file():
            continue
        name, text = str(path.relative_to(directory)), path.read_text()
        for pattern, value in set_once.get(name, []):
            text, number = re.subn(pattern, lambda _, value=value: value, text, flags=re.MULTILINE)  # type: ignore[misc]
            if number != 1:
                raise ChartError(
                    f"{name} of the gardenlet's chart must have {pattern!r} exactly once, not {number} times"
                )
        files[f"{GARDENLET}/{name}"] = text.encode()
    return files


def _image_values(image: Image) -> str:
    return _IMAGE_VALUES.format(repository=image.repository, tag=image.tag, digest=image.digest)


class _Template:
    """Puts a mark in place of a value in an object, and the expression in place of the mark in the text.

    An expression itself would not be read or written as YAML.
    """

    def __init__(self, objects: Iterable[dict[str, Any]], *, fixed: str) -> None:
        self._fixed = fixed
        self._marks: dict[str, str] = {}
        self._defaults: dict[str, dict[str, Any]] = {}
        deployments = [each for each in objects if each["kind"] == "Deployment"]
        if not deployments:
            raise ChartError("no object is a Deployment, but the chart has values for one")
        self.namespace = fixed or deployments[0]["metadata"]["namespace"]
        self._paths = {
            _config_map_of(each): _camel(each["metadata"]["labels"]["role"]) if len(deployments) > 1 else ""
            for each in deployments
        }

    def of(self, each: dict[str, Any]) -> dict[str, Any]:
        if not self._fixed:
            if "namespace" in each["metadata"]:
                each["metadata"]["namespace"] = self._mark(_NAMESPACE)
            for subject in each.get("subjects", []):
                if subject.get("namespace") == self.namespace:
                    subject["namespace"] = self._mark(_NAMESPACE)
        if each["kind"] == "ConfigMap" and each["metadata"]["name"] in self._paths:
            self._set_config(each)
        if each["kind"] == "Deployment":
            self._set_deployment(self._paths[_config_map_of(each)], each["spec"])
        return each

    def _set_config(self, config_map: dict[str, Any]) -> None:
        name = config_map["metadata"]["name"]
        path = self._paths[name]
        value = f"tpl {_value(path, 'config')} ."
        # at any place, as in kustomize
        self._marks[f"{name.rpartition('-')[0]}-{{{{ {value} | sha256sum | trunc 10 }}}}"] = name
        config = config_map["data"][_CONFIG_FILE]
        if not self._fixed:
            named = f"resourceNamespace: {self.namespace}\n"
            if config.count(named) != 1:
                raise ChartError(
                    f"{_CONFIG_FILE} must have {named!r} exactly once, where the chart inserts the namespace of the "
                    "release"
                )
            config = config.replace(named, f"resourceNamespace: {_NAMESPACE}\n")
        self._take(path, "config", config)
        config_map["data"] = {_CONFIG_FILE: self._mark(f"{{{{ {value} | quote }}}}")}

    def _set_deployment(self, path: str, spec: dict[str, Any]) -> None:
        self._take(path, "replicas", spec["replicas"])
        spec["replicas"] = self._mark(f"{{{{ {_value(path, 'replicas')} }}}}")
        for container in spec["template"]["spec"]["containers"]:
            container["image"] = self._mark(_IMAGE)
            if container.get("ports"):  # others only help
                self._take(path, "resources", container["resources"])
                container["resources"] = self._mark(f"{{{{ toJson {_value(path, 'resources')} }}}}")

    def _take(self, path: str, value: str, default: object) -> None:
        taken = self._defaults.setdefault(path, {})
        if value in taken:
            raise ChartError(f"more than one object has {value}, but the chart has one value for them")
        taken[value] = default

    def values(self) -> str:
        """The defaults, as the file of values."""
        return "".join(self._values_of(path) for path in self._paths.values())

    def _values_of(self, path: str) -> str:
        taken = self._defaults.get(path, {})
        for each in ("replicas", "resources", "config"):
            if each not in taken:
                raise ChartError(f"no object has {each}, the value of the chart")
        text = _VALUES.format(
            path=f"{path}.config" if path else "config",
            replicas=taken["replicas"],
            resources=_indented(yaml.safe_dump(taken["resources"], sort_keys=False)),
            config=_indented(taken["config"]),
        )
        return f"{path}:\n{_indented(text)}\n" if path else text

    def _mark(self, expression: str) -> str:
        return self._marks.setdefault(expression, f"xMARK{len(self._marks)}x")

    def text(self, text: str) -> str:
        if "{{" in text:
            raise ChartError("an object has {{, which Helm would take for a template")
        for expression, mark in self._marks.items():
            text = text.replace(mark, expression)
        return text


def _config_map_of(deployment: dict[str, Any]) -> str:
    volumes = deployment["spec"]["template"]["spec"]["volumes"]
    (name,) = (each["configMap"]["name"] for each in volumes if "configMap" in each)
    return str(name)


def _camel(role: str) -> str:
    first, *others = role.split("-")
    return first + "".join(each.capitalize() for each in others)


def _value(path: str, name: str) -> str:
    return ".".join(filter(None, (".Values", path, name)))


def _indented(text: str) -> str:
    return "".join(f"  {line}" for line in text.splitlines(keepends=True)).rstrip("\n")
