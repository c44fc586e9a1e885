"""ExposureClass: how API servers of Shoots are reached."""

from gardener.api.definition import AGE, Column, Definition
from gardener.api.garden import EXPOSURE_CLASSES
from gardener.api.garden.common import DNS_LABEL, seed_selector, tolerations
from gardener.api.schema import immutable, string, struct

EXPOSURE_CLASS = Definition(
    resource=EXPOSURE_CLASSES,
    description="A way in which API servers of Shoots are reached, such as from inside of a company only. Shoots name"
    " it in `spec.exposureClassName`.",
    fields={
        "handler*": string(
            "Name by which Seeds know what to do: gardenlets are configured with load balancers for it. A label of"
            " DNS. Immutable.",
            at_least=1,
            at_most=34,
            pattern=DNS_LABEL["pattern"],
        ),
        "scheduling": struct(
            "Effect of the class on the choice of a Seed. Immutable.",
            {
                "seedSelector": seed_selector("Seeds that Shoots of the class may run on; added to the Shoot's own."),
                "tolerations": tolerations("Taints of Seeds that do not matter; added to the Shoot's own."),
            },
        ),
    },
    rules=[immutable("handler"), immutable("scheduling")],
    columns=(Column("Handler", ".handler"), AGE),
)
