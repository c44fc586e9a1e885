"""All fields of the Pod API that name a Secret or ConfigMap are found, by the schema that the API server publishes."""

from collections.abc import Iterator
from typing import Any

from devcluster.cluster import Cluster
from kube.pod_references import slots

PREFIX = "#/components/schemas/"
SELECTORS = {
    **{f"Secret{kind}": ("Secret", "name") for kind in ("EnvSource", "KeySelector", "Projection", "Reference")},
    **{
        f"ConfigMap{kind}": ("ConfigMap", "name") for kind in ("EnvSource", "KeySelector", "Projection", "VolumeSource")
    },
    "SecretVolumeSource": ("Secret", "secretName"),
    "AzureFileVolumeSource": ("Secret", "secretName"),
    # In Pods it refers to Secrets only.
    "LocalObjectReference": ("Secret", "name"),
}
"""By the name of a type: what an object of it refers to, and in which field."""
LOOKED_AT = ("Secret", "ConfigMap", "LocalObjectReference")


class Sample:
    """One object with all fields of a schema, in which each reference has a name of its own."""

    def __init__(self, schemas: dict[str, Any]) -> None:
        self._schemas = schemas
        self.expected: dict[str, str] = {}
        """Kinds by names."""

    def of(self, schema: dict[str, Any], path: str) -> Any:
        for each in schema.get("allOf", ()):
            schema = {**schema, **each}
        if "$ref" in schema:
            return self._of_type(schema["$ref"].removeprefix(PREFIX), path)
        match schema.get("type"):
            case "array":
                return [self.of(schema["items"], path)]
            case "object":
                return {name: self.of(each, f"{path}.{name}") for name, each in schema.get("properties", {}).items()}
            case "string":
                return path
        return 0

    def _of_type(self, name: str, path: str) -> Any:
        made = self.of(self._schemas[name], path)
        kind, field = SELECTORS.get(name.rpartition(".")[2], ("", ""))
        if kind:
            self.expected[made[field]] = kind
        return made

    def types(self, schema: Any) -> Iterator[str]:
        """Names of the types that it is made of, at any depth."""
        found, left = set[str](), [schema]
        while left:
            part = left.pop()
            if isinstance(part, dict):
                name = str(part.get("$ref") or "").removeprefix(PREFIX)
                if name and name not in found:
                    found.add(name)
                    left.append(self._schemas[name])
                left += part.values()
            elif isinstance(part, list):
                left += part
        return (name.rpartition(".")[2] for name in found)


def test_each_field_of_a_pod_that_names_a_secret_or_config_map_is_found(cluster: Cluster) -> None:
    schemas = cluster.api.get("/openapi/v3/api/v1")["components"]["schemas"]
    sample = Sample(schemas)
    spec = sample.of(schemas["io.k8s.api.core.v1.PodSpec"], "spec")
    assert {slot.name: slot.kind for slot in slots(spec)} == sample.expected
    assert {path.split(".")[2] for path in sample.expected if path.startswith("spec.volumes.")} >= {
        *("azureFile", "cephfs", "configMap", "csi", "flexVolume", "iscsi", "projected", "rbd", "scaleIO", "secret"),
        "storageos",
    }


def test_no_type_of_a_pod_that_refers_to_secrets_or_config_maps_is_unknown_here(cluster: Cluster) -> None:
    schemas = cluster.api.get("/openapi/v3/api/v1")["components"]["schemas"]
    types = set(Sample(schemas).types(schemas["io.k8s.api.core.v1.PodSpec"]))
    assert {each for each in types if each.startswith(LOOKED_AT)} <= SELECTORS.keys()
