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
    match_labels: Annotated[dict[str, str], setting("Labels to have, all of them.")] = field(default_factory=dict)
    match_expressions: Annotated[
        tuple[LabelSelectorRequirement, ...], setting("Requirements to meet, all of them.")
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
        setting("Time for which a condition that was true is progressing before it is false.", longer_than_zero),
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
        tuple[LabelSelector, ...], setting("Namespaces whose Services are handled; empty: all.", each(label_selector))
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
            "Peers of policies for traffic from everywhere: `none`, or three `explicit` ones (all pods, all IPv4, all "
            "IPv6), which in some network plugins leave out traffic from nodes.",
            one_of("explicit", "none"),
            zero_is_unset=True,
        ),
    ] = "none"
    istio_routes: Annotated[
        bool,
        setting(
            "Let pods of Istio's Gateways reach the Services that VirtualServices route to, unless their labels do. "
            "Releases of the original before v1.141 do not."
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
            "Audiences of tokens; an empty list: those of the API server.", each(required_value("must not be empty"))
        ),
    ] = ("gardener",)
    merge_service_account_labels: Annotated[
        bool, setting("Add labels to existing ServiceAccounts instead of replacing theirs.")
    ] = False
    restore_target_kubeconfig: Annotated[bool, setting("Copy the kubeconfig to a target Secret that lost it.")] = False
