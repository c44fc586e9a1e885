"""CloudProfile: the offer of an infrastructure to Shoots, for all projects."""

from gardener.api.definition import AGE, Column, Definition
from gardener.api.garden import CLOUD_PROFILES
from gardener.api.garden.common import provider_type, seed_selector
from gardener.api.schema import (
    Schema,
    array,
    boolean,
    quantity,
    raw,
    rule,
    string,
    string_map,
    strings,
    struct,
    time,
)

MOST_VERSIONS = 1024
MOST_OF_A_KIND = 2048

_EXPIRATION = time(
    "Expiration of the version: afterwards new Shoots cannot use it, and existing ones are updated "
    "in their maintenance time window. Never, if not given."
)
_CLASSIFICATION = string(
    "preview: to be tried out. supported: for all; one for each minor version. deprecated: no longer the best choice."
    " Not given counts as supported.",
    enum=["preview", "supported", "deprecated"],
)
_ARCHITECTURE_NAMES = ["amd64", "arm64"]

MACHINE_TYPE = struct(
    "A machine type.",
    {
        "name*": string("Name of the machine type on the infrastructure.", at_least=1, at_most=128),
        "cpu*": quantity("CPU of a machine; cores."),
        "gpu*": quantity("Number of GPUs."),
        "memory*": quantity("Memory of a machine; bytes, such as 8Gi."),
        "storage": struct(
            "The root volume that machines of this type have in any case.",
            {
                "class*": string(
                    "Class of the storage: standard, premium, or another; quotas count by it.", at_least=1, at_most=128
                ),
                "type*": string("Type of the storage on the infrastructure.", at_least=1, at_most=128),
                "size": quantity("Size of the storage; bytes. Not together with minSize."),
                "minSize": quantity("Minimum size of the storage; bytes."),
            },
            rules=[rule("has(self.size) != has(self.minSize)", "must have either size or minSize")],
        ),
        "usable": boolean("Whether new pools may have such machines. Default: true.", default=True),
        "architecture": string("Architecture of the CPU. Default: amd64.", default="amd64", enum=_ARCHITECTURE_NAMES),
    },
)

VOLUME_TYPE = struct(
    "A volume type.",
    {
        "name*": string("Name of the volume type on the infrastructure.", at_least=1, at_most=128),
        "class*": string(
            "Class of the volume type: standard, premium, or another; quotas count by it.", at_least=1, at_most=128
        ),
        "usable": boolean("Whether new pools may have such volumes. Default: true.", default=True),
        "minSize": quantity("Size of a volume at least; bytes."),
    },
)

_VERSION = struct(
    "A version of Kubernetes.",
    {
        "version*": string("The version, in full: `1.30.5`.", pattern=r"^([0-9]+\.){2}[0-9]+$", at_most=64),
        "expirationDate": _EXPIRATION,
        "classification": _CLASSIFICATION,
    },
)

_IMAGE_VERSION = struct(
    "A version of the image.",
    {
        "version*": string("The version; a semantic version.", at_least=1, at_most=128),
        "expirationDate": _EXPIRATION,
        "classification": _CLASSIFICATION,
        "cri": array(
            "Container runtimes in the image. Default: containerd.",
            struct(
                "A container runtime.",
                {
                    "name*": string("Name of the container runtime: containerd.", enum=["containerd"]),
                    "containerRuntimes": array(
                        "Further runtimes that work with it.",
                        struct(
                            "A further runtime.",
                            {"type*": string("Type of the container runtime.", at_least=1, at_most=63)},
                        ),
                        at_most=32,
                    ),
                },
            ),
            default=[{"name": "containerd"}],
            at_most=8,
        ),
        "architectures": array(
            "Architectures of the CPU that the image is there for. Default: amd64.",
            string("An architecture.", enum=_ARCHITECTURE_NAMES),
            default=["amd64"],
            at_most=8,
        ),
        "kubeletVersionConstraint": string(
            "Versions of kubelet that work with the image: `>= 1.28, < 1.31`. Default is all.", at_most=256
        ),
    },
)


MACHINE_IMAGE = struct(
    "A machine image.",
    {
        "name*": string("Name of the machine image.", at_least=1, at_most=128),
        "updateStrategy": string(
            "Extent of automatic updates: patch (within a minor version), minor (within a major version), "
            "major (to the newest). Default: major.",
            enum=["patch", "minor", "major"],
            default="major",
        ),
        "versions*": array("Versions of the image.", _IMAGE_VERSION, key="version", at_least=1, at_most=MOST_VERSIONS),
    },
)

KUBERNETES_VERSION, IMAGE_VERSION = _VERSION, _IMAGE_VERSION

REGION = struct(
    "A region.",
    {
        "name*": string("Name of the region on the infrastructure.", at_least=1, at_most=128),
        "zones": array(
            "Zones of the region.",
            struct(
                "A zone.",
                {
                    "name*": string("Name of the zone on the infrastructure.", at_least=1, at_most=128),
                    "unavailableMachineTypes": strings("Machine types that are not there.", at_most=MOST_OF_A_KIND),
                    "unavailableVolumeTypes": strings("Volume types that are not there.", at_most=MOST_OF_A_KIND),
                },
            ),
            key="name",
            at_most=64,
        ),
        "labels": string_map("Labels of the region. Nothing here uses them; tools may."),
    },
)


def volume_types() -> Schema:
    return array("Volume types that Shoots may use.", VOLUME_TYPE, key="name", at_most=MOST_OF_A_KIND)


SPEC = struct(
    "Offer of an infrastructure to Shoots.",
    {
        "type*": provider_type("Type of the infrastructure."),
        "caBundle": string("Certificates (PEM) that all nodes trust."),
        "providerConfig": raw(
            "Settings that the provider's extension knows: what the names below are on the infrastructure."
        ),
        "seedSelector": seed_selector(
            "Seeds that control planes of Shoots with this profile may run on. Default is all with the type of the"
            " infrastructure."
        ),
        "bastion": struct(
            "Machines of Bastions.",
            {
                "machineImage": struct(
                    "Image of the machines. Default is the newest one that exists for the machine type.",
                    {
                        "name*": string("One of the machine images.", at_least=1, at_most=128),
                        "version": string("Version of the image. Default is the newest.", at_most=128),
                    },
                ),
                "machineType": struct(
                    "Machine type. Default is the smallest.",
                    {"name*": string("One of the machine types.", at_least=1, at_most=128)},
                ),
            },
            rules=[rule("has(self.machineType) || has(self.machineImage)", "needs a machine type or a machine image")],
        ),
        "kubernetes*": struct(
            "Versions of Kubernetes that Shoots may use.",
            {
                "versions*": array(
                    "Versions that Shoots may have. The highest may not expire.",
                    _VERSION,
                    key="version",
                    at_least=1,
                    at_most=MOST_VERSIONS,
                )
            },
        ),
        "machineImages*": array(
            "Machine images that Shoots may use.", MACHINE_IMAGE, key="name", at_least=1, at_most=256
        ),
        "machineTypes*": array(
            "Machine types that Shoots may use.", MACHINE_TYPE, key="name", at_least=1, at_most=MOST_OF_A_KIND
        ),
        "volumeTypes": volume_types(),
        "regions*": array("Regions that Shoots may use.", REGION, key="name", at_least=1, at_most=256),
    },
)

CLOUD_PROFILE = Definition(
    resource=CLOUD_PROFILES,
    description="Offer of an infrastructure: versions of Kubernetes, machine images, machine types, volume "
    "types, regions. Shoots choose from it.",
    fields={"spec*": SPEC},
    columns=(Column("Provider", ".spec.type"), AGE),
)
