"""Definitions of kinds, their CustomResourceDefinitions, and the files in `manifests/crds/garden`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import yaml

from gardener.api.schema import Rule, Schema, integer, not_decreased, raw, struct
from kube.objects import Object
from kube.resources import Resource
from kube.yaml import Dumper

OPERATION = struct(
    "Operations that the admission webhooks count. A rise of the sequence changes the object and so "
    "raises its generation: an operation annotation thus triggers the controllers although the rest "
    "of the spec is unchanged.",
    {
        "sequence": integer(
            "Number of requested operations, from 0. Written by the admission webhooks only; changes by users have no "
            "effect.",
            at_least=0,
            bits=64,
        )
    },
    rules=[not_decreased("sequence")],
)
"""A counter outside metadata and status, for kinds whose generation has to rise for an annotation."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`; priority 1 is shown with `-o wide` only."""

    name: str
    path: str
    kind: str = "string"
    priority: int = 0
    description: str = ""


AGE = Column("Age", ".metadata.creationTimestamp", "date")


@dataclass(frozen=True, slots=True)
class Scale:
    """Paths of the values of the subresource `scale`."""

    spec: str
    status: str
    selector: str


def open_fields(reporter: str) -> Mapping[str, Schema]:
    """Fields of a kind of another project, which validates spec and status by itself."""
    return {"spec": raw("Desired state of the object."), "status": raw(f"State that {reporter} reports.")}


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherVersion:
    """A served version other than the stored one.

    A webhook converts, unless the objects are the `same` in both versions.
    """

    name: str
    fields: Mapping[str, Schema]
    description: str
    columns: Sequence[Column] = ()
    same: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One kind.

    Attributes:
        resource: with the stored version.
        fields: all but apiVersion, kind and metadata; `name*` is required. `status` enables the subresource.
        name: constraint of names in addition to DNS subdomains: a string schema without description.
        rules: for the whole object.
        selectable: paths that field selectors may name.
        has_operation: whether annotations may request operations; see OPERATION.
        labels, annotations: of the CustomResourceDefinition.
    """

    resource: Resource
    description: str
    fields: Mapping[str, Schema]
    columns: Sequence[Column] = (AGE,)
    name: Schema = field(default_factory=dict)
    rules: Sequence[Rule] = ()
    selectable: Sequence[str] = ()
    scale: Scale | None = None
    has_operation: bool = False
    others: Sequence[OtherVersion] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def schema(self) -> Schema:
        """Schema of the stored version."""
        operation = {"operation": OPERATION} if self.has_operation else {}
        return self._schema(self.description, {**self.fields, **operation})

    def schema_of(self, version: str) -> Schema | None:
        """Schema of a version; None if the version is not served."""
        if version == self.resource.version:
            return self.schema
        others = {other.name: other for other in self.others}
        return self._schema(others[version].description, others[version].fields) if version in others else None

    def _schema(self, description: str, fields: Mapping[str, Schema]) -> Schema:
        metadata: Schema = {"type": "object"}
        if self.name:
            metadata["properties"] = {"name": self.name}
        return struct(
            description,
            {"apiVersion": _API_VERSION, "kind": _KIND, "metadata": metadata, **fields},
            rules=self.rules,
        )


_API_VERSION = {"type": "string", "description": "Group and version of the API, which define the fields."}
_KIND = {"type": "string", "description": "Name of the kind of this object. It never changes."}


def custom_resource_definition(definition: Definition, *, conversion: Object | None = None) -> Object:
    """The object for the API server.

    Other versions that differ are served only with a conversion, the `webhook` of `spec.conversion`: without one, the
    API server would drop the fields that the stored version lacks.
    """
    resource = definition.resource
    served = [_version(definition, resource.version, definition.schema, definition.columns)]
    served += [
        {
            **_version(definition, other.name, definition.schema_of(other.name), other.columns),
            "served": bool(conversion) or other.same,
        }
        for other in definition.others
    ]
    spec: Object = {
        "group": resource.group,
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "names": {
            "kind": resource.kind,
            "listKind": f"{resource.kind}List",
            "plural": resource.plural,
            "singular": resource.kind.lower(),
            **({"shortNames": list(resource.short_names)} if resource.short_names else {}),
        },
        "versions": served,
    }
    if conversion:
        spec["conversion"] = {"strategy": "Webhook", "webhook": conversion}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{resource.plural}.{resource.group}",
            **({"labels": dict(definition.labels)} if definition.labels else {}),
            **({"annotations": dict(definition.annotations)} if definition.annotations else {}),
        },
        "spec": spec,
    }


def _version(definition: Definition, name: str, schema: Schema | None, columns: Iterable[Column]) -> Object:
    version: Object = {"name": name, "served": True, "storage": name == definition.resource.version}
    subresources: Object = {"status": {}} if "status" in definition.fields else {}
    if scale := definition.scale:
        subresources["scale"] = {
            "specReplicasPath": scale.spec,
            "statusReplicasPath": scale.status,
            "labelSelectorPath": scale.selector,
        }
    if subresources:
        version["subresources"] = subresources
    if shown := [_column(column) for column in columns]:
        version["additionalPrinterColumns"] = shown
    if definition.selectable:
        version["selectableFields"] = [{"jsonPath": f".{path}"} for path in definition.selectable]
    version["schema"] = {"openAPIV3Schema": schema}
    return version


def _column(column: Column) -> Object:
    entry: Object = {"name": column.name, "type": column.kind, "jsonPath": column.path}
    if column.description:
        entry["description"] = column.description
    if column.priority:
        entry["priority"] = column.priority
    return entry


# --- files


KUSTOMIZATION = "Kustomization"
"""Name without the suffix .yaml, so that `kubectl apply -f` of the directory does not read it as an object."""
_GENERATED = "# Generated by `make crds` from gardener/api/garden; do not edit.\n"


def file_name(definition: Definition) -> str:
    return f"{definition.resource.plural}.{definition.resource.group}.yaml"


def files(definitions: Iterable[Definition]) -> dict[str, str]:
    """The text of each file by its name, and of a kustomization that lists them."""
    made = {file_name(one): _GENERATED + text(custom_resource_definition(one)) for one in definitions}
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": sorted(made),
    }
    return {**made, KUSTOMIZATION: _GENERATED + text(kustomization)}


def text(obj: Object) -> str:
    return yaml.dump(obj, Dumper=Dumper, sort_keys=False, width=160, allow_unicode=True)
