"""ControllerInstallation: an extension in a Seed."""

from gardener.api.definition import AGE, Column, Definition
from gardener.api.garden import CONTROLLER_INSTALLATIONS
from gardener.api.garden.common import DNS_LABEL, OBJECT_REFERENCE, conditions
from gardener.api.schema import Schema, but, immutable, name, raw, struct, with_fields


def _reference(description: str, what: str) -> Schema:
    named = with_fields(but(OBJECT_REFERENCE, description), {"name*": name(f"Name of the {what}.")})
    return {**named, "x-kubernetes-validations": [immutable("name")]}


def _condition(column: str) -> Column:
    return Column(column, f'.status.conditions[?(@.type=="{column}")].status')


CONTROLLER_INSTALLATION = Definition(
    resource=CONTROLLER_INSTALLATIONS,
    name=DNS_LABEL,
    description="Requests an extension in a Seed. The controllers create it from a ControllerRegistration; gardenlet "
    "installs it.",
    fields={
        "spec*": struct(
            "Extension to install, and its Seed.",
            {
                "registrationRef*": _reference(
                    "The ControllerRegistration. Its name is immutable.", "ControllerRegistration"
                ),
                "seedRef*": _reference("The Seed. Its name is immutable.", "Seed"),
                "deploymentRef": but(OBJECT_REFERENCE, "The ControllerDeployment to install."),
            },
        ),
        "status": struct(
            "State that gardenlet reports.",
            {
                "conditions": conditions(
                    "Conditions of the installation: Valid, Installed, Healthy, Progressing, Required."
                ),
                "providerStatus": raw("State that the extension reports."),
            },
        ),
    },
    selectable=("spec.seedRef.name", "spec.registrationRef.name"),
    columns=(
        Column("Registration", ".spec.registrationRef.name"),
        Column("Seed", ".spec.seedRef.name"),
        *(_condition(one) for one in ("Valid", "Installed", "Healthy", "Progressing")),
        AGE,
    ),
)
