"""ControllerRegistration: available extensions, and when they are installed in a Seed."""

from gardener.api.definition import AGE, Column, Definition
from gardener.api.garden import CONTROLLER_REGISTRATIONS
from gardener.api.garden.common import DNS_LABEL, label_selector
from gardener.api.schema import FORBIDDEN, array, boolean, duration, name, rule, string, struct

EXTENSION_KINDS = (
    *("BackupBucket", "BackupEntry", "Bastion", "ContainerRuntime", "ControlPlane", "DNSRecord", "Extension"),
    *("Infrastructure", "Network", "OperatingSystemConfig", "Worker"),
)
_BEFORE, _AFTER, _AFTER_WORKER = "BeforeKubeAPIServer", "AfterKubeAPIServer", "AfterWorker"

_RESOURCE = struct(
    "A kind and type of extension objects.",
    {
        # Kubernetes 1.28 estimates the cost of comparing kinds from this length, not from the enumeration.
        "kind*": string("Kind of the objects.", enum=EXTENSION_KINDS, at_most=63),
        "type*": string("Type of the objects, such as the name of a cloud.", at_least=1, at_most=63),
        "primary": boolean(
            "Whether this extension does the main work for them; one extension is primary for a kind and type. Others"
            " only add something. Immutable. Default: true.",
            default=True,
        ),
        "globallyEnabled": boolean(
            "Whether all Shoots have it, but those that turn it off; for kind Extension only. The webhooks fill in"
            " false there."
        ),
        "reconcileTimeout": duration(
            "Timeout of the extension; for kind Extension only. The webhooks fill in 3m there."
        ),
        "lifecycle": struct(
            "Order of the extension's work relative to the API server of the Shoot; for kind Extension only.",
            {
                "reconcile": string(
                    "Order for creation and changes of the Shoot. The webhooks fill in AfterKubeAPIServer.",
                    enum=[_AFTER, _AFTER_WORKER, _BEFORE],
                ),
                "delete": string(
                    "Order for deletion of the Shoot. The webhooks fill in BeforeKubeAPIServer.", enum=[_AFTER, _BEFORE]
                ),
                "migrate": string(
                    "Order for migration of the Shoot away from its Seed. The webhooks fill in BeforeKubeAPIServer.",
                    enum=[_AFTER, _BEFORE],
                ),
            },
        ),
        "workerlessSupported": boolean("Whether Shoots without workers may use it; for kind Extension only."),
    },
    rules=[
        rule(
            f"self.kind == 'Extension' || !has(self.{field})",
            "field must not be set when kind != Extension",
            field=field,
            reason=FORBIDDEN,
        )
        for field in ("globallyEnabled", "reconcileTimeout", "lifecycle")
    ],
)

_SPEC = struct(
    "Kinds and types of extension objects that the extension is responsible for, and its deployment.",
    {
        "resources": array(
            "Kinds and types that the extension is responsible for. Each pair of kind and type occurs once.",
            _RESOURCE,
            at_most=256,
        ),
        "deployment": struct(
            "Deployment of the extension.",
            {
                "policy": string(
                    "OnDemand: in Seeds where something needs it. Always: in all Seeds. AlwaysExceptNoShoots: in"
                    " Seeds that have Shoots. Default: OnDemand.",
                    enum=["Always", "AlwaysExceptNoShoots", "OnDemand"],
                    default="OnDemand",
                ),
                "seedSelector": label_selector(
                    "Labels of Seeds in which it may be installed. Not for extensions that are primary for anything."
                ),
                "deploymentRefs": array(
                    "ControllerDeployments to install. If empty, the extension is deployed by other means.",
                    struct("A ControllerDeployment.", {"name*": name("Name of the ControllerDeployment.")}),
                    at_most=1,
                ),
            },
        ),
    },
    rules=[
        rule(
            "!has(self.deployment) || !has(self.deployment.seedSelector) || !has(self.resources)"
            " || !self.resources.exists(r, has(r.primary) && r.primary)",
            "specifying a seed selector is not allowed when controlling resources primarily",
            field="deployment.seedSelector",
            reason=FORBIDDEN,
        ),
        rule(
            "!has(self.resources) || !has(oldSelf.resources) || self.resources == oldSelf.resources"
            " || self.resources.all(r, !oldSelf.resources.exists(o,"
            " o.kind == r.kind && o.type == r.type && o.primary != r.primary))",
            "field `primary` of a kind and type is immutable",
            field="resources",
        ),
    ],
)


CONTROLLER_REGISTRATION = Definition(
    resource=CONTROLLER_REGISTRATIONS,
    name=DNS_LABEL,
    description="Registers an extension: what it is responsible for, and in which Seeds it is installed. A"
    " ControllerInstallation is made for each of them.",
    fields={"spec*": _SPEC},
    columns=(Column("Resources", ".spec.resources[*].kind"), Column("Types", ".spec.resources[*].type"), AGE),
)
