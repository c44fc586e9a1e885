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
        "name*": string("Its name.", at_least=1),
        "command": string("What is done with it: start, restart or stop."),
        "enable": boolean("Whether it is started with the node."),
        "content": string("The text of the unit."),
        "dropIns": array(
            "Texts that add to the unit.",
            struct(
                "A drop-in.",
                {"name*": string("Name of its file.", at_least=1), "content*": string("Its text.", at_least=1)},
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
                "encoding*": string("Of the data: b64, or empty for plain text.", enum=["", "b64"]),
                "data*": string("Its text, encoded so."),
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
        "path*": string("Where it is written.", at_least=1),
        "permissions": integer("Its mode as a number: 420 is 0644. Default: 0644.", bits=64),
        "content*": _CONTENT,
        "hostName": string("The only host that gets it. Default: all get it."),
    },
)

_REGISTRY = struct(
    "Where images of a registry are pulled from.",
    {
        "upstream*": string("The registry, as images name it; `_default` stands for all others."),
        "server": string("URL of the registry."),
        "hosts": array(
            "Mirrors, in the order in which they are tried.",
            struct(
                "A mirror.",
                {
                    "url*": string("Its URL."),
                    "capabilities": strings("What it can do: pull, resolve, push."),
                    "caCerts": strings("Files with the authorities that its certificate may be from."),
                },
            ),
        ),
        "readinessProbe": boolean("Whether the mirrors are used only once they answer."),
    },
)

_CRI_CONFIG = struct(
    "The container runtime.",
    {
        "name*": string("Its name: containerd.", at_least=1),
        "cgroupDriver": string("How it makes control groups.", enum=["cgroupfs", "systemd"]),
        "containerd": struct(
            "Settings of containerd; not for the purpose provision.",
            {
                "registries": array("Where images are pulled from.", _REGISTRY),
                "sandboxImage*": string("Image of the container that holds the namespaces of a Pod."),
                "plugins": array(
                    "Changes of plugins' settings.",
                    struct(
                        "A change.",
                        {
                            "op": string("What is done with the values. Add, if not given.", enum=["add", "remove"]),
                            "path*": strings("Where in the settings."),
                            "values": anything("What is added there."),
                        },
                    ),
                ),
            },
        ),
    },
)

_RESERVED = struct(
    "What is kept from Pods.",
    {
        "cpu": quantity("Amount of CPU."),
        "memory": quantity("Amount of memory."),
        "ephemeralStorage": quantity("Amount of ephemeral storage."),
        "pid": quantity("Number of processes."),
    },
)


def _rotation(description: str) -> Schema:
    return struct(description, {"lastInitiationTime": time("When it was started last.")})


_IN_PLACE_UPDATES = struct(
    "What nodes are updated to without being replaced.",
    {
        "operatingSystemVersion*": string("Version of the operating system."),
        "kubelet*": struct(
            "Version and settings of the kubelet.",
            {
                "version*": string("Its version."),
                "cpuManagerPolicy": string("How Pods get CPUs."),
                "evictionHard": signals("Below which Pods are evicted at once.", "Available", string),
                "kubeReserved": _RESERVED,
                "systemReserved": _RESERVED,
            },
        ),
        "credentialsRotation": struct(
            "Rotations that nodes have to follow.",
            {
                "certificateAuthorities": _rotation("Of the certificate authorities."),
                "serviceAccountKey": _rotation("Of the key that signs tokens."),
            },
        ),
    },
)

OPERATING_SYSTEM_CONFIG = definition(
    OPERATING_SYSTEM_CONFIGS,
    "What is written and started on the nodes of a worker pool.",
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
            "How nodes are updated.",
            {
                "osUpdate": struct(
                    "How their operating system is.",
                    {"command*": string("Path of the program."), "args": strings("Its arguments.")},
                )
            },
        ),
    },
    columns=(Column("Purpose", ".spec.purpose"),),
    rules=[immutable("purpose")],
)
