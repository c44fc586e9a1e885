"""ControllerDeployment: how an extension is installed. It has two versions; the webhooks convert."""

from gardener.api.definition import AGE, Definition, OtherVersion
from gardener.api.garden import CONTROLLER_DEPLOYMENTS
from gardener.api.garden.common import DNS_LABEL, OCI_REPOSITORY
from gardener.api.schema import anything, base64, boolean, but, exactly_one, raw, string, struct

_DESCRIPTION = "Installation of an extension in Seeds: a Helm chart. A ControllerRegistration refers to it."

_INJECTION = {
    "injectGardenKubeconfig": boolean(
        "Whether programs of the extension get a kubeconfig for the garden, except those with the label "
        'extensions.gardener.cloud/inject-garden-kubeconfig: "false". Default: true.'
    )
}

CONTROLLER_DEPLOYMENT = Definition(
    resource=CONTROLLER_DEPLOYMENTS,
    name=DNS_LABEL,
    description=_DESCRIPTION,
    fields={
        "helm": struct(
            "A Helm chart: either its archive, or where a registry has it.",
            {
                "rawChart": base64("The chart as helm packs it, base64."),
                "values": anything("Values for the chart, any JSON."),
                "ociRepository": but(
                    OCI_REPOSITORY,
                    "Location of the chart in a registry: `ref` alone, or `repository` with `tag` or `digest`.",
                ),
            },
            rules=[exactly_one(("rawChart", "ociRepository"), "must provide either rawChart or ociRepository")],
        ),
        **_INJECTION,
    },
    columns=(AGE,),
    others=(
        OtherVersion(
            name="v1beta1",
            description=f"{_DESCRIPTION} Use v1.",
            fields={
                "type*": string("Type of the installation: helm, or a type of another tool."),
                "providerConfig": raw(
                    "Settings of the installation. For helm: chart (base64) or ociRepository, and values."
                ),
                **_INJECTION,
            },
            columns=(AGE,),
        ),
    ),
)
