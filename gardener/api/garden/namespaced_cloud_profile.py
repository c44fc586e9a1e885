"""NamespacedCloudProfile: changes and additions of a project to a CloudProfile."""

from gardener.api.definition import AGE, Column, Definition
from gardener.api.garden import NAMESPACED_CLOUD_PROFILES
from gardener.api.garden.cloud_profile import (
    IMAGE_VERSION,
    KUBERNETES_VERSION,
    MACHINE_IMAGE,
    MACHINE_TYPE,
    MOST_OF_A_KIND,
    MOST_VERSIONS,
    volume_types,
)
from gardener.api.garden.cloud_profile import SPEC as PROFILE
from gardener.api.garden.common import CLOUD_PROFILE_REFERENCE, OBSERVED_GENERATION
from gardener.api.schema import (
    Schema,
    array,
    but,
    forbidden,
    immutable,
    name,
    string,
    struct,
    with_fields,
    without_defaults,
)

_VERSION_FIELDS = ("version", "expirationDate")


def _of_parent(description: str, schema: Schema, *fields: str) -> Schema:
    """Schema of an entry of the parent that permits only these fields; the others are declared, to be refused."""
    known = without_defaults(schema)
    others = [field for field in schema["properties"] if field not in fields]
    not_here = {field: but(known["properties"][field], "Not to be set here: the parent decides.") for field in others}
    rules = [forbidden(field, "may not be set in a NamespacedCloudProfile") for field in others]
    return {
        **known,
        "description": description,
        "properties": {**known["properties"], **not_here},
        "x-kubernetes-validations": rules,
    }


_SPEC = struct(
    "Differences from the parent.",
    {
        "parent*": with_fields(
            but(CLOUD_PROFILE_REFERENCE, "The CloudProfile that this one changes. Immutable."),
            {
                "kind*": string("Kind of the parent: CloudProfile.", enum=["CloudProfile"]),
                "name*": name("Name of the CloudProfile."),
            },
        ),
        "caBundle": string("Certificates (PEM) that nodes trust beside those of the parent."),
        "kubernetes": struct(
            "Changes of Kubernetes versions by this profile.",
            {
                "versions": array(
                    "Versions of the parent that expire at another time here.",
                    _of_parent("A version of the parent.", KUBERNETES_VERSION, *_VERSION_FIELDS),
                    key="version",
                    at_most=MOST_VERSIONS,
                )
            },
        ),
        "machineImages": array(
            "Machine images of the parent with versions that expire at another time here.",
            with_fields(
                _of_parent("A machine image of the parent.", MACHINE_IMAGE, "name", "versions"),
                {
                    "versions*": array(
                        "Versions that expire at another time here.",
                        _of_parent("A version of the parent.", IMAGE_VERSION, *_VERSION_FIELDS),
                        key="version",
                        at_most=MOST_VERSIONS,
                    )
                },
            ),
            key="name",
            at_most=256,
        ),
        "machineTypes": array(
            "Machine types that the parent does not have.", MACHINE_TYPE, key="name", at_most=MOST_OF_A_KIND
        ),
        "volumeTypes": volume_types(),
    },
    rules=[immutable("parent")],
)

_STATUS = struct(
    "State that the controllers report.",
    {
        "cloudProfileSpec": but(without_defaults(PROFILE), "The parent with the changes: what Shoots choose from."),
        "observedGeneration": OBSERVED_GENERATION,
    },
)

NAMESPACED_CLOUD_PROFILE = Definition(
    resource=NAMESPACED_CLOUD_PROFILES,
    description="A CloudProfile as a project needs it: versions that live longer, machine types and volume types of"
    " its own.",
    fields={"spec*": _SPEC, "status": _STATUS},
    selectable=("spec.parent.name",),
    columns=(Column("Parent Name", ".spec.parent.name"), Column("Parent Kind", ".spec.parent.kind"), AGE),
)
