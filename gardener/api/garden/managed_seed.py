"""ManagedSeed: a Shoot that becomes a Seed."""

from gardener.api.definition import AGE, Column, Definition
from gardener.api.garden import MANAGED_SEEDS
from gardener.api.garden.common import DNS_LABEL, OBSERVED_GENERATION, conditions, template_metadata
from gardener.api.garden.seed import template_spec
from gardener.api.schema import (
    Schema,
    array,
    boolean,
    but,
    exactly_one,
    immutable,
    integer,
    mapping,
    name,
    quantity,
    raw,
    rule,
    string,
    string_map,
    struct,
)

_RESOURCES = struct(
    "Resources of gardenlet.",
    {
        "requests": mapping("Requested resources, by name: cpu, memory.", quantity("The amount.")),
        "limits": mapping("Limits of resources, by name: cpu, memory.", quantity("The amount.")),
    },
)


def deployment_fields() -> dict[str, Schema]:
    """Fields of the Deployment of gardenlet."""
    return {
        "replicaCount": integer("Number of Pods of gardenlet. Default: 2.", default=2, at_least=0),
        "revisionHistoryLimit": integer("Old ReplicaSets that are kept. Default: 2.", default=2, at_least=0),
        "serviceAccountName": string("ServiceAccount. Default is `gardenlet`.", at_most=253),
        "image": struct(
            "The image. Default is the release of who installs it.",
            {
                "repository": string("Registry and repository of the image, without the tag.", at_least=1),
                "tag": string("Tag of the image.", at_least=1),
                "pullPolicy": string(
                    "Pull policy of the image. The webhooks fill in Always for the tag `latest`, else IfNotPresent.",
                    enum=["Always", "IfNotPresent", "Never"],
                ),
            },
        ),
        "resources": _RESOURCES,
        "podLabels": string_map("Labels of the Pods."),
        "podAnnotations": string_map("Annotations of the Pods."),
        "additionalVolumes": array("Volumes that the Pods of gardenlet have besides.", raw("A volume, as in a Pod.")),
        "additionalVolumeMounts": array("Mounts of additional volumes.", raw("A mount, as in a container.")),
        "env": array("Environment variables that gardenlet has besides.", raw("A variable, as in a container.")),
        "vpa": boolean("Whether a vertical autoscaler looks after the Pods."),
    }


_SEED_TEMPLATE = struct(
    "The Seed. Missing fields about its cluster are taken from the Shoot.",
    {
        "metadata": template_metadata("Labels and annotations of the Seed, which is called as the ManagedSeed."),
        "spec": template_spec(),
    },
)

CONFIG = raw(
    "A GardenletConfiguration of gardenlet.config.gardener.cloud/v1alpha1. `seedConfig` in it is the Seed, whose name"
    " is not given here."
)

CONFIG_API_VERSION, CONFIG_KIND = "gardenlet.config.gardener.cloud/v1alpha1", "GardenletConfiguration"
CONFIG_SCHEMA = struct(
    "The parts of a gardenlet's configuration that the garden reads. The API server does not know them.",
    {
        "apiVersion*": string("API version of the configuration.", enum=[CONFIG_API_VERSION]),
        "kind*": string("Kind of the configuration.", enum=[CONFIG_KIND]),
        "gardenClientConnection": struct(
            "Connection to the garden.",
            {
                "kubeconfig": string("Path of a kubeconfig."),
                "bootstrapKubeconfig": raw("Secret with the kubeconfig for the first certificate."),
                "kubeconfigSecret": raw("Secret with the kubeconfig that comes of it."),
            },
        ),
        "resources": struct(
            "Resources of the Seed.",
            {
                "capacity": mapping("Capacity, by name: shoots.", quantity("The amount.")),
                "reserved": mapping("Reserved part of the capacity.", quantity("The amount.")),
            },
        ),
        "seedConfig": _SEED_TEMPLATE,
    },
)

_GARDENLET = struct(
    "The gardenlet in the cluster.",
    {
        "deployment": struct("Deployment of gardenlet. Default: see its fields.", deployment_fields(), default={}),
        "config": CONFIG,
        "bootstrap": string(
            "Way in which gardenlet gets its first certificate: by a BootstrapToken, by the token of a "
            "ServiceAccount, or None: by the kubeconfig in its configuration. Immutable. Default: "
            "BootstrapToken.",
            enum=["BootstrapToken", "ServiceAccount", "None"],
            default="BootstrapToken",
        ),
        "mergeWithParent": boolean(
            "Whether the configuration only has the differences from that of the gardenlet that installs this one."
            " Immutable. Default: true.",
            default=True,
        ),
    },
    rules=[immutable("bootstrap"), immutable("mergeWithParent")],
)

RULES = (
    exactly_one(("seedTemplate", "gardenlet"), "either seed template or gardenlet is required"),
    rule(
        "has(self.seedTemplate) == has(oldSelf.seedTemplate)",
        "changing from seed template to gardenlet and vice versa is not allowed",
    ),
)
"""Rules for the spec, also that of a template."""

SPEC = struct(
    "The Shoot, and either the gardenlet in it, or the Seed without one.",
    {
        "shoot*": struct("The Shoot, in the same namespace. Immutable.", {"name*": name("Name of the Shoot.")}),
        "seedTemplate": but(
            _SEED_TEMPLATE,
            "The Seed, if its gardenlet is installed by other means. Missing fields about its "
            "cluster are taken from the Shoot.",
        ),
        "gardenlet": _GARDENLET,
    },
    rules=[immutable("shoot"), *RULES],
)

MANAGED_SEED = Definition(
    resource=MANAGED_SEEDS,
    description="Makes a Seed of a Shoot: a gardenlet is installed in it, which registers a Seed with the name of"
    " this object, or this Seed is made from a template. In the namespace `garden` only.",
    name=DNS_LABEL,
    fields={
        "spec*": SPEC,
        "status": struct(
            "State that gardenlet reports.",
            {
                "conditions": conditions("Conditions of the ManagedSeed: ShootReconciled, SeedRegistered."),
                "observedGeneration": OBSERVED_GENERATION,
            },
        ),
    },
    has_operation=True,
    selectable=("spec.shoot.name",),
    columns=(
        Column("Status", '.status.conditions[?(@.type=="SeedRegistered")].status'),
        Column("Shoot", ".spec.shoot.name"),
        Column("Gardenlet", ".spec.gardenlet.bootstrap"),
        AGE,
    ),
)
