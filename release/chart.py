"""The chart for Helm, written from the objects that kustomize makes of an overlay, so that there is one source of both.

Settings for users become values: image, replicas, resources, the configuration file. The namespace is the release's.
Everything else is as in the overlay. The CustomResourceDefinitions are in `crds/`: Helm installs them, and never
deletes them.
"""

from collections.abc import Iterable
from typing import Any

import yaml

NAME = "resource-manager"
_NAMESPACE, _CONFIG = "{{ .Release.Namespace }}", "{{ tpl .Values.config . | quote }}"
_HASH = "{{ tpl .Values.config . | sha256sum | trunc 10 }}"
_IMAGE = (
    "{{ .Values.image.repository }}"
    "{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag }}{{ end }}"
)
_REPLICAS, _RESOURCES = "{{ .Values.replicas }}", "{{ toJson .Values.resources }}"
_CONFIG_FILE = "config.yaml"

_VALUES = """\
image:
  repository: {repository}
  tag: {tag}
  digest: "{digest}" # such as sha256:..., in place of the tag
replicas: {replicas}
resources:
{resources}
# The configuration file, see docs/configuration.md: --set-file config=config.yaml. It may use Helm's templates.
config: |
{config}
"""


class ChartError(Exception):
    """The overlay has changed, so that the chart would differ from it."""


def chart(
    objects: Iterable[dict[str, Any]], *, version: str, namespace: str, repository: str, tag: str, digest: str
) -> dict[str, bytes]:
    """Files by their paths, which begin with the name of the chart.

    Args:
        objects: objects that kustomize makes of the overlay.
        version: version of the chart and of the program in it, such as `0.1.0`.
        namespace: namespace of the overlay; its object is left out, since Helm creates that of the release.
        repository: repository of the image.
        tag: tag of the image.
        digest: digest of the image, or empty.

    Raises:
        ChartError: the overlay does not fit the values of the chart.
    """
    template = _Template(namespace)
    definitions, others = [], []
    for each in objects:
        if each["kind"] == "CustomResourceDefinition":
            definitions.append(each)
        elif each["kind"] != "Namespace":
            others.append(template.of(each))
    about = {
        "apiVersion": "v2",
        "name": NAME,
        "description": "Applies ManagedResources and keeps what they contain",
        "type": "application",
        "version": version,
        "appVersion": tag,
        "kubeVersion": ">=1.28.0-0",
    }
    values = _VALUES.format(
        repository=repository,
        tag=tag,
        digest=digest,
        replicas=template.default("replicas"),
        resources=_indented(yaml.safe_dump(template.default("resources"), sort_keys=False)),
        config=_indented(template.default("config")),
    )
    files = {
        "Chart.yaml": yaml.safe_dump(about, sort_keys=False),
        "values.yaml": values,
        "crds/definitions.yaml": yaml.safe_dump_all(definitions, sort_keys=False),
        "templates/objects.yaml": template.text(yaml.safe_dump_all(others, sort_keys=False)),
    }
    return {f"{NAME}/{path}": content.encode() for path, content in files.items()}


class _Template:
    """Puts a mark in place of a value in an object, and the expression in place of the mark in the text.

    An expression itself would not be read or written as YAML.
    """

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.marks: dict[str, str] = {}
        self.defaults: dict[str, Any] = {}

    def of(self, each: dict[str, Any]) -> dict[str, Any]:
        if "namespace" in each["metadata"]:
            each["metadata"]["namespace"] = self.mark(_NAMESPACE)
        for subject in each.get("subjects", []):
            if subject.get("namespace") == self.namespace:
                subject["namespace"] = self.mark(_NAMESPACE)
        if each["kind"] == "ConfigMap":
            self.set_config(each)
        if each["kind"] == "Deployment":
            self.set_deployment(each["spec"])
        return each

    def set_config(self, config_map: dict[str, Any]) -> None:
        name = config_map["metadata"]["name"]
        self.marks[f"{name.rpartition('-')[0]}-{_HASH}"] = name  # at any place, as in kustomize
        named = f"resourceNamespace: {self.namespace}\n"
        config = config_map["data"][_CONFIG_FILE]
        if config.count(named) != 1:
            raise ChartError(
                f"{_CONFIG_FILE} must have {named!r} exactly once, where the chart inserts the namespace of the release"
            )
        self.take("config", config.replace(named, f"resourceNamespace: {_NAMESPACE}\n"))
        config_map["data"] = {_CONFIG_FILE: self.mark(_CONFIG)}

    def set_deployment(self, spec: dict[str, Any]) -> None:
        self.take("replicas", spec["replicas"])
        spec["replicas"] = self.mark(_REPLICAS)
        for container in spec["template"]["spec"]["containers"]:
            self.take("resources", container["resources"])
            container["resources"], container["image"] = self.mark(_RESOURCES), self.mark(_IMAGE)

    def take(self, value: str, default: object) -> None:
        if value in self.defaults:
            raise ChartError(f"more than one object has {value}, but the chart has one value for them")
        self.defaults[value] = default

    def default(self, value: str) -> Any:
        if value not in self.defaults:
            raise ChartError(f"no object has {value}, the value of the chart")
        return self.defaults[value]

    def mark(self, expression: str) -> str:
        return self.marks.setdefault(expression, f"xMARK{len(self.marks)}x")

    def text(self, text: str) -> str:
        if "{{" in text:
            raise ChartError("an object has {{, which Helm would take for a template")
        for expression, mark in self.marks.items():
            text = text.replace(mark, expression)
        return text


def _indented(text: str) -> str:
    return "".join(f"  {line}" for line in text.splitlines(keepends=True)).rstrip("\n")
