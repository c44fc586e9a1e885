"""Blocks of controllers that several programs run."""

from dataclasses import dataclass, field
from typing import Annotated

from gardener import keys
from kube.objects import Object
from process.configuration.blocks import Enabled
from process.configuration.checks import (
    at_least,
    each,
    label_selector,
    label_value,
    longer_than_zero,
    namespace_if_given,
    one_of,
    required_value,
)
from process.configuration.fields import Duration, Setting, setting


def workers() -> Setting:
    """Number of objects that a controller processes at once; the references explain it above their fields."""
    return setting("", at_least(1))


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSelectorRequirement:
    key: Annotated[str, setting("Name of the label.")] = ""
    operator: Annotated[str, setting("`In`, `NotIn`, `Exists` or `DoesNotExist`.")] = ""
    values: Annotated[tuple[str, ...], setting("Values for `In` and `NotIn`.")] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSelector:
    match_labels: Annotated[dict[str, str], setting("Labels that must all match.")] = field(default_factory=dict)
    match_expressions: Annotated[
        tuple[LabelSelectorRequirement, ...], setting("Requirements that must all be met.")
    ] = ()

    def as_object(self) -> Object:
        """Return the JSON form, without empty fields."""
        expressions = [
            {"key": each.key, "operator": each.operator} | ({"values": list(each.values)} if each.values else {})
            for each in self.match_expressions
        ]
        fields = {"matchLabels": dict(self.match_labels), "matchExpressions": expressions}
        return {name: value for name, value in fields.items() if value}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionThreshold:
    type: Annotated[str, setting("Type of the condition.", required_value())] = ""
    duration: Annotated[
        Duration,
        setting("Time that a condition stays progressing before it turns from true to false.", longer_than_zero),
    ] = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class IngressControllerSelector:
    namespace: Annotated[
        str,
        setting(
            "Namespace of the pods.",
            required_value("must specify the namespace of the ingress controller"),
            namespace_if_given,
        ),
    ] = ""
    pod_selector: Annotated[LabelSelector, setting("Labels of the pods.", label_selector)] = field(
        default_factory=LabelSelector
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkPolicy:
    enabled: Enabled = False
    concurrent_syncs: Annotated[int, workers()] = 5
    namespace_selectors: Annotated[
        tuple[LabelSelector, ...], setting("Namespaces of the Services to handle; empty: all.", each(label_selector))
    ] = ()
    ingress_controller_selector: Annotated[
        IngressControllerSelector | None, setting("Pods of the ingress controller; unset: Ingresses are ignored.")
    ] = None
    require_matching_pods: Annotated[
        bool, setting("Create policies between namespaces only if a pod has the label that they select.")
    ] = False
    from_world_peers: Annotated[
        str,
        setting(
            "Peers of policies that allow traffic from everywhere: `none`, or three `explicit` peers (all "
            "pods, all IPv4, all IPv6), which do not cover traffic from nodes with some network plugins.",
            one_of("explicit", "none"),
            zero_is_unset=True,
        ),
    ] = "none"
    istio_routes: Annotated[
        bool,
        setting(
            "Allow pods of Istio Gateways to reach the Services that VirtualServices route to, unless the "
            "labels of the pods already allow it. Gardener releases before v1.141 do not."
        ),
    ] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRequestor:
    enabled: Enabled = False
    concurrent_syncs: Annotated[int, workers()] = 5
    class_: Annotated[
        str | None,
        setting(
            f"Handle only Secrets with this value of the label `{keys.CLASS}`; unset: all.",
            label_value,
            name="class",
            zero_is_unset=True,
        ),
    ] = None
    audiences: Annotated[
        tuple[str, ...],
        setting(
            "Audiences of tokens; an empty list: the audiences of the API server.",
            each(required_value("must not be empty")),
        ),
    ] = ("gardener",)
    merge_service_account_labels: Annotated[
        bool, setting("Add labels to existing ServiceAccounts instead of replacing their labels.")
    ] = False
    restore_target_kubeconfig: Annotated[
        bool, setting("Restore the kubeconfig of a target Secret that has lost it.")
    ] = False
