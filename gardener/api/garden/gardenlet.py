"""Gardenlet: a gardenlet that keeps itself up to date."""

from gardener.api.definition import AGE, Column, Definition
from gardener.api.garden import GARDENLETS
from gardener.api.garden.common import DNS_LABEL, OBSERVED_GENERATION, OCI_REPOSITORY, conditions
from gardener.api.garden.managed_seed import CONFIG, deployment_fields
from gardener.api.schema import base64, exactly_one, name, string, struct

GARDENLET = Definition(
    resource=GARDENLETS,
    description="A gardenlet in a cluster that is not a Shoot: it reads this object and updates its own installation. "
    "Its Seed has the same name. In the namespace `garden` only.",
    name=DNS_LABEL,
    fields={
        "spec*": struct(
            "Deployment and configuration of gardenlet.",
            {
                "deployment*": struct(
                    "Deployment of gardenlet, and the chart for it.",
                    {
                        **deployment_fields(),
                        "helm*": struct(
                            "The Helm chart of gardenlet: where a registry has it, or its archive.",
                            {
                                "rawChart": base64("The chart as helm packs it, base64, where there is no registry."),
                                "ociRepository": OCI_REPOSITORY,
                            },
                            rules=[
                                exactly_one(
                                    ("rawChart", "ociRepository"), "must provide either rawChart or ociRepository"
                                )
                            ],
                        ),
                        "imageVectorOverwrite": string("Images that gardenlet uses instead of its own; YAML."),
                        "componentImageVectorOverwrite": string(
                            "Image vector for components that have images of their own; YAML."
                        ),
                    },
                ),
                "config": CONFIG,
                "kubeconfigSecretRef": struct(
                    "Secret whose key `kubeconfig` leads to the cluster, for the first installation."
                    " gardener-operator uses it, and removes it afterwards.",
                    {"name": name("Name of the Secret, in the same namespace.")},
                ),
            },
        ),
        "status": struct(
            "State that gardenlet reports.",
            {
                "conditions": conditions("Conditions of the gardenlet: GardenletReconciled."),
                "observedGeneration": OBSERVED_GENERATION,
            },
        ),
    },
    has_operation=True,
    columns=(
        Column("OCI Repository", ".spec.deployment.helm.ociRepository.ref"),
        Column("Reconciled", '.status.conditions[?(@.type=="GardenletReconciled")].status'),
        AGE,
    ),
)
