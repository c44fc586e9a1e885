"""The kinds of Istio, whose ingress gateways route to the API servers of Shoots and to dashboards of operators.

Istio validates their fields: here they are open, and their versions differ in their names only.
"""

from collections.abc import Sequence

from gardener.api.definition import AGE, Column, Definition, OtherVersion, open_fields
from gardener.api.kinds import DESTINATION_RULES, ENVOY_FILTERS, GATEWAYS, ISTIO_GROUP, VIRTUAL_SERVICES
from kube.resources import Resource

_SECURITY, _TELEMETRY, _EXTENSIONS = "security.istio.io", "telemetry.istio.io", "extensions.istio.io"
_LABELS = {"app": "istio-pilot", "chart": "istio", "heritage": "Tiller", "release": "istio"}
_PARTS = {_SECURITY: "security", _TELEMETRY: "telemetry"}
_KEEP = {"helm.sh/resource-policy": "keep"}
_HOST = (Column("Host", ".spec.host"), AGE)
_HOSTS = (Column("Hosts", ".spec.hosts"), AGE)


def _kind(group: str, version: str, kind: str, plural: str, *short_names: str) -> Resource:
    return Resource(group, version, kind, plural, namespaced=True, short_names=short_names)


def _definition(
    resource: Resource,
    description: str,
    *,
    others: Sequence[str] = (),
    columns: Sequence[Column] = (AGE,),
    is_kept: bool = True,
) -> Definition:
    """Definition of a kind. Args: others: versions; is_kept: whether Helm keeps it when it uninstalls a release."""
    fields = open_fields("Istio")
    part = _PARTS.get(resource.group)
    return Definition(
        resource=resource,
        description=description,
        labels={**_LABELS, **({"istio": part} if part else {})},
        annotations=_KEEP if is_kept else {},
        fields=fields,
        columns=columns,
        others=[
            OtherVersion(name=each, fields=fields, description=description, columns=columns, same=True)
            for each in others
        ],
    )


_ALPHA = ("v1alpha3",)

DEFINITIONS: tuple[Definition, ...] = (
    _definition(
        _kind(_SECURITY, "v1beta1", "AuthorizationPolicy", "authorizationpolicies", "ap"),
        "Requests that workloads accept.",
        others=["v1"],
    ),
    _definition(DESTINATION_RULES, "Policies for connections to a Service.", others=_ALPHA, columns=_HOST),
    _definition(ENVOY_FILTERS, "Changes of the configuration of proxies."),
    _definition(GATEWAYS, "Ports at which proxies take connections.", others=_ALPHA),
    _definition(
        _kind(_SECURITY, "v1beta1", "PeerAuthentication", "peerauthentications", "pa"),
        "Whether workloads take connections without certificates.",
    ),
    _definition(_kind(ISTIO_GROUP, "v1beta1", "ProxyConfig", "proxyconfigs"), "Settings of proxies."),
    _definition(
        _kind(_SECURITY, "v1beta1", "RequestAuthentication", "requestauthentications", "ra"),
        "Tokens of requests that workloads accept.",
        others=["v1"],
    ),
    _definition(
        _kind(ISTIO_GROUP, "v1beta1", "ServiceEntry", "serviceentries", "se"),
        "Services that the cluster does not know.",
        others=_ALPHA,
        columns=_HOSTS,
    ),
    _definition(
        _kind(ISTIO_GROUP, "v1beta1", "Sidecar", "sidecars"),
        "Connections that sidecar proxies accept and open.",
        others=_ALPHA,
    ),
    _definition(
        _kind(_TELEMETRY, "v1alpha1", "Telemetry", "telemetries", "telemetry"), "Logs, metrics and traces of proxies."
    ),
    _definition(VIRTUAL_SERVICES, "Routes of requests to Services.", others=_ALPHA, columns=_HOSTS),
    _definition(_kind(_EXTENSIONS, "v1alpha1", "WasmPlugin", "wasmplugins"), "WebAssembly that proxies run."),
    _definition(
        _kind(ISTIO_GROUP, "v1beta1", "WorkloadEntry", "workloadentries", "we"),
        "A workload outside of the cluster.",
        others=_ALPHA,
    ),
    _definition(
        _kind(ISTIO_GROUP, "v1beta1", "WorkloadGroup", "workloadgroups", "wg"),
        "Equal workloads outside of the cluster.",
        others=_ALPHA,
        is_kept=False,
    ),
)
