"""OperatingSystemConfig: files and units of the nodes of a worker pool."""

from gardener.api.definition import Column
from gardener.api.extensions import OPERATING_SYSTEM_CONFIGS
from gardener.api.extensions.common import definition, secret_reference
from gardener.api.garden.common import signals
from gardener.api.schema import (
    Schema,
    anything,
    array,
    boolean,
    immutable,
    integer,
    quantity,
    string,
    strings,
    struct,
    time,
)

_UNIT = struct(
    "A unit of systemd.",
    {
        "name*": string("Name of the unit.", at_least=1),
        "command": string("Command to run for the unit: start, restart or stop."),
        "enable": boolean("Whether the unit starts with the node."),
        "content": string("The text of the unit."),
        "dropIns": array(
            "Texts that add to the unit.",
            struct(
                "A drop-in.",
                {
                    "name*": string("Name of its file.", at_least=1),
                    "content*": string("Content of the drop-in.", at_least=1),
                },
            ),
        ),
        "filePaths": strings("Files that the unit needs: it is started again when one of them changes."),
    },
)

_CONTENT = struct(
    "The content: one of secretRef, inline, imageRef.",
    {
        "secretRef": struct(
            "A value of a Secret in the same namespace.",
            {"name*": string("Name of the Secret."), "dataKey*": string("Key of the value.")},
        ),
        "inline": struct(
            "The content itself.",
            {
                "encoding*": string("Encoding of the data: b64, or empty for plain text.", enum=["", "b64"]),
                "data*": string("Data in this encoding."),
            },
        ),
        "transmitUnencoded": boolean("Whether the content is sent as it is, so that it can be changed on the way."),
        "imageRef": struct(
            "A file of a container image.",
            {"image*": string("Name of the image."), "filePathInImage*": string("Path of the file in it.")},
        ),
    },
)

_FILE = struct(
    "A file.",
    {
        "path*": string("Path of the file.", at_least=1),
        "permissions": integer("Mode of the file as a decimal number: 420 is 0644. Default: 0644.", bits=64),
        "content*": _CONTENT,
        "hostName": string("The only host that gets it. Default: all get it."),
    },
)

_REGISTRY = struct(
    "Hosts to pull images of a registry from.",
    {
        "upstream*": string("The registry, as images name it; `_default` stands for all others."),
        "server": string("URL of the registry."),
        "hosts": array(
            "Mirrors, in the order in which they are tried.",
            struct(
                "A mirror.",
                {
                    "url*": string("URL of the mirror."),
                    "capabilities": strings("Capabilities of the mirror: pull, resolve, push."),
                    "caCerts": strings("Files with the authorities that its certificate may be from."),
                    "overridePath": boolean(
                        "Whether the path of `url` is the root of the API, and `/v2` is not appended. Default: false."
                    ),
                },
            ),
        ),
        "readinessProbe": boolean("Whether the mirrors are used only once they answer."),
    },
)

_CRI_CONFIG = struct(
    "The container runtime.",
    {
        "name*": string("Name of the container runtime: containerd.", at_least=1),
        "cgroupDriver": string("Driver for control groups.", enum=["cgroupfs", "systemd"]),
        "containerd": struct(
            "Settings of containerd; not for the purpose provision.",
            {
                "registries": array("Registries to pull images from.", _REGISTRY),
                "sandboxImage*": string("Image of the container that holds the namespaces of a Pod."),
                "plugins": array(
                    "Changes of plugins' settings.",
                    struct(
                        "A change.",
                        {
                            "op": string("Operation on the values. Default: add.", enum=["add", "remove"]),
                            "path*": strings("Path in the settings."),
                            "values": anything("Values of the operation."),
                        },
                    ),
                ),
            },
        ),
    },
)

_RESERVED = struct(
    "Resources reserved for the system.",
    {
        "cpu": quantity("Amount of CPU."),
        "memory": quantity("Amount of memory."),
        "ephemeralStorage": quantity("Amount of ephemeral storage."),
        "pid": quantity("Number of processes."),
    },
)


def _rotation(description: str) -> Schema:
    return struct(description, {"lastInitiationTime": time("Time of the last start of the rotation.")})


_IN_PLACE_UPDATES = struct(
    "Desired state of an in-place update of nodes.",
    {
        "operatingSystemVersion*": string("Version of the operating system."),
        "kubelet*": struct(
            "Version and settings of the kubelet.",
            {
                "version*": string("Version of the kubelet."),
                "cpuManagerPolicy": string("Policy for the assignment of CPUs to Pods."),
                "evictionHard": signals("Thresholds of immediate eviction of Pods.", "Available", string),
                "kubeReserved": _RESERVED,
                "systemReserved": _RESERVED,
            },
        ),
        "credentialsRotation": struct(
            "Rotations that nodes have to follow.",
            {
                "certificateAuthorities": _rotation("Rotation of the certificate authorities."),
                "serviceAccountKey": _rotation("Rotation of the key that signs tokens."),
            },
        ),
    },
)

OPERATING_SYSTEM_CONFIG = definition(
    OPERATING_SYSTEM_CONFIGS,
    "Files and units for the nodes of a worker pool.",
    spec={
        "criConfig": _CRI_CONFIG,
        "purpose*": string(
            "provision: for the start of a machine. reconcile: for the life of the node. Immutable.",
            enum=["provision", "reconcile"],
        ),
        "units": array("Units of systemd.", _UNIT),
        "files": array("Files; no path twice for a host.", _FILE),
        "inPlaceUpdates": _IN_PLACE_UPDATES,
    },
    status={
        "cloudConfig": struct(
            "The result for the start of a machine.",
            {"secretRef*": secret_reference("Secret with the result.")},
        ),
        "extensionUnits": array("Units that the extension adds.", _UNIT),
        "extensionFiles": array("Files that the extension adds.", _FILE),
        "inPlaceUpdates": struct(
            "In-place updates of nodes.",
            {
                "osUpdate": struct(
                    "Update of the operating system.",
                    {"command*": string("Path of the program."), "args": strings("Arguments of the program.")},
                )
            },
        ),
    },
    columns=(Column("Purpose", ".spec.purpose"),),
    rules=[immutable("purpose")],
)
