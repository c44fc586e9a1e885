"""All fields of the gardenlet's configuration file, except those of its controllers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

from config.gardenlet.controllers import NOT_NEGATIVE, Controllers
from gardener.conditions import SHOOT_CONDITIONS
from gardener.garden.networks import cidr_errors, family_errors, overlap_errors
from kube.addresses import ip_errors
from kube.names import dns_label_problems
from kube.objects import Object, mapping, text, texts
from kube.paths import at, mapping_at
from kube.quantities import parse_quantity
from kube.validation import FieldError, forbidden, invalid, invalid_for, not_supported, required
from process.configuration.blocks import ClientConnection, ElectingConfiguration, HTTPServer, LeaderElection, Server
from process.configuration.checks import at_least, each, lasts_at_least, object_name, one_of
from process.configuration.checks import labels as valid_labels
from process.configuration.checks import namespace as valid_namespace
from process.configuration.fields import Check, Duration, join, setting

_TEN_MINUTES = 600.0
FEATURES: Mapping[str, bool] = {
    "DefaultSeccompProfile": False,
    "HVPA": False,
    "HVPAForShootedSeed": False,
    "IPv6SingleStack": False,
    "NewVPN": False,
    "NewWorkerPoolHash": False,
    "ShootManagedIssuer": False,
    "VPAAndHPAForAPIServer": True,
    "VPAForETCD": True,
}
"""Feature gates of the release, with their defaults."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretReference:
    name: Annotated[str, setting("Name of the Secret.", object_name)] = ""
    namespace: Annotated[str, setting("Namespace of the Secret, in the seed cluster.", valid_namespace)] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeconfigValidity:
    validity: Annotated[
        Duration | None,
        setting(
            "Requested lifetime; unset: the garden decides.",
            lasts_at_least(_TEN_MINUTES, "validity must be at least 10m"),
        ),
    ] = None
    auto_rotation_jitter_percentage_min: Annotated[
        int, setting("Minimum percentage of the lifetime after which a certificate is replaced.")
    ] = 70
    auto_rotation_jitter_percentage_max: Annotated[
        int, setting("Maximum percentage of the lifetime after which a certificate is replaced.")
    ] = 90

    def errors(self, path: str) -> Iterator[FieldError]:
        least, most = self.auto_rotation_jitter_percentage_min, self.auto_rotation_jitter_percentage_max
        where = f"{path}.autoRotationJitterPercentageMin"
        if least < 1:
            yield invalid(where, least, "minimum percentage must be at least 1")
        if most > 100:
            yield invalid(f"{path}.autoRotationJitterPercentageMax", most, "maximum percentage must be at most 100")
        if least >= most:
            yield invalid(where, least, "minimum percentage must be less than maximum percentage")


@dataclass(frozen=True, slots=True, kw_only=True)
class GardenClientConnection(ClientConnection):
    kubeconfig: Annotated[str, setting("Path of the kubeconfig, used if `kubeconfigSecret` has none.")] = ""
    qps: Annotated[
        float, setting("Requests per second over the whole connection; negative: no limit.", zero_is_unset=True)
    ] = 50.0
    burst: Annotated[
        int, setting("Requests beyond `qps` after idle time.", at_least(0, "must be non-negative"), zero_is_unset=True)
    ] = 100
    garden_cluster_address: Annotated[
        str, setting("Address of the garden's API server, for extensions and the gardenlets of ManagedSeeds.")
    ] = ""
    garden_cluster_ca_cert: Annotated[
        str,
        setting(
            "CA certificates of the garden's API server (PEM in base64); `none`: the CAs of the system.",
            name="gardenClusterCACert",
        ),
    ] = ""
    bootstrap_kubeconfig: Annotated[
        SecretReference | None, setting("Secret with a kubeconfig that is allowed to request a certificate.")
    ] = None
    kubeconfig_secret: Annotated[
        SecretReference | None, setting("Secret that stores the kubeconfig with the certificate.")
    ] = None
    kubeconfig_validity: Annotated[KubeconfigValidity, setting("Lifetime of the certificate.")] = KubeconfigValidity()


def _quantities(path: str, value: Mapping[str, Any]) -> Iterator[FieldError]:
    for name, amount in value.items():
        try:
            if parse_quantity(str(amount)) < 0:
                yield invalid(f"{path}.{name}", amount, NOT_NEGATIVE)
        except ValueError as error:
            yield invalid(f"{path}.{name}", amount, str(error))


_AMOUNTS = Check("quantities by name", _quantities)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    capacity: Annotated[dict[str, Any], setting("Maximum amounts for the seed, such as `shoots`.", _AMOUNTS)] = field(
        default_factory=dict
    )
    reserved: Annotated[dict[str, Any], setting("Part of the capacity that is not available to Shoots.", _AMOUNTS)] = (
        field(default_factory=dict)
    )

    def errors(self, path: str) -> Iterator[FieldError]:
        for name, amount in self.reserved.items():
            where = f"{path}.reserved.{name}"
            if name not in self.capacity:
                yield invalid(where, amount, "reserved without capacity")
                continue
            try:
                if parse_quantity(str(amount)) > parse_quantity(str(self.capacity[name])):
                    yield invalid(where, amount, "reserved must be lower or equal to capacity")
            except ValueError:
                continue  # reported for the quantity itself


def _seed_errors(path: str, value: dict[str, Any]) -> Iterator[FieldError]:
    """Yield errors of a Seed that do not depend on the garden; the garden checks the rest at its registration."""
    meta = mapping(value.get("metadata"))
    if name := text(meta.get("name")):
        yield from invalid_for(f"{path}.metadata.name", name, dns_label_problems(name))
    else:
        yield required(f"{path}.metadata.name", "name or generateName is required")
    yield from valid_labels.errors(f"{path}.metadata.labels", mapping(meta.get("labels")))
    for field_path in (("provider", "type"), ("provider", "region")):
        if not text(at(value, "spec", *field_path)):
            yield required(".".join((path, "spec", *field_path)), "must provide it")
    networks = mapping_at(value, "spec", "networks")
    ranges = {name: text(networks.get(name)) for name in ("pods", "services", "nodes")}
    for name in ("pods", "services"):
        if not ranges[name]:
            yield required(f"{path}.spec.networks.{name}", "must provide it")
    given = {f"{path}.spec.networks.{name}": cidr for name, cidr in ranges.items() if cidr}
    for where, cidr in given.items():
        yield from cidr_errors(where, cidr)
    yield from family_errors(given, texts(networks.get("ipFamilies")))
    yield from overlap_errors(given)


def _address(path: str, value: str) -> Iterator[FieldError]:
    if value and any(ip_errors(path, value)):
        yield invalid(path, value, "external service ip is invalid")


_ADDRESS = Check("", _address)


@dataclass(frozen=True, slots=True, kw_only=True)
class SNIIngress:
    service_name: Annotated[str, setting("Service of the ingress gateway.", zero_is_unset=True)] = (
        "istio-ingressgateway"
    )
    namespace: Annotated[str, setting("Namespace of the ingress gateway.", zero_is_unset=True)] = "istio-ingress"
    labels: Annotated[
        dict[str, str], setting("Labels of the pods of the ingress gateway.", valid_labels, zero_is_unset=True)
    ] = field(default_factory=lambda: {"app": "istio-ingressgateway", "istio": "ingressgateway"})
    service_external_ip: Annotated[
        str, setting("IP address of the Service of the ingress gateway.", _ADDRESS, name="serviceExternalIP")
    ] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SNI:
    ingress: Annotated[SNIIngress, setting("Ingress gateway.")] = field(default_factory=SNIIngress)


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerIngress:
    service_name: Annotated[str, setting("Service of the ingress gateway.", zero_is_unset=True)] = (
        "istio-ingressgateway"
    )
    namespace: Annotated[
        str, setting("Namespace of the ingress gateway; empty: `istio-ingress-handler-<name>`.", valid_namespace)
    ] = ""
    labels: Annotated[
        dict[str, str], setting("Labels of the pods of the ingress gateway.", valid_labels, zero_is_unset=True)
    ] = field(default_factory=lambda: {"app": "istio-ingressgateway", "gardener.cloud/role": "exposureclass-handler"})
    service_external_ip: Annotated[
        str, setting("IP address of the Service of the ingress gateway.", _ADDRESS, name="serviceExternalIP")
    ] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerSNI:
    ingress: Annotated[HandlerIngress, setting("Ingress gateway.")] = field(default_factory=HandlerIngress)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadBalancerService:
    annotations: Annotated[dict[str, str], setting("Annotations of the Service.")] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExposureClassHandler:
    name: Annotated[str, setting("Name of the handler.", valid_namespace)] = ""
    load_balancer_service: Annotated[LoadBalancerService, setting("Service of the handler's ingress gateway.")] = field(
        default_factory=LoadBalancerService
    )
    sni: Annotated[HandlerSNI, setting("Ingress gateway of the handler.")] = field(default_factory=HandlerSNI)


@dataclass(frozen=True, slots=True, kw_only=True)
class Logging:
    enabled: Annotated[bool, setting("Collect logs of control planes.")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ShootMonitoring:
    enabled: Annotated[
        bool,
        setting(
            "Report conditions of monitoring components that others deploy for Shoots, and publish a login for them."
        ),
    ] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Monitoring:
    shoot: Annotated[ShootMonitoring, setting("Monitoring of Shoots; the gardenlet deploys no components for it.")] = (
        ShootMonitoring()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeToleration:
    default_not_ready_toleration_seconds: Annotated[
        int | None, setting("Number of seconds that pods tolerate nodes that are not ready.", at_least(0, NOT_NEGATIVE))
    ] = None
    default_unreachable_toleration_seconds: Annotated[
        int | None, setting("Number of seconds that pods tolerate unreachable nodes.", at_least(0, NOT_NEGATIVE))
    ] = None


RESOURCE_MANAGER = "gardener-resource-manager"
GARDENLET_AUTOSCALING = "gardenlet-autoscaling"
COMPONENTS = (
    RESOURCE_MANAGER,
    GARDENLET_AUTOSCALING,
    *("cluster-autoscaler", "machine-controller-manager", "etcd-druid", "istio", "kube-state-metrics-seed"),
    *("nginx-ingress", "plutono", "prometheus-aggregate", "prometheus-cache", "prometheus-operator"),
    *("prometheus-seed", "vpa", "vpn-authorization-server"),
)
"""Components of a seed that may be left out."""
KUBERNETES_PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler")


TUNNEL = "vpn-seed-server"
SHOOT_COMPONENTS = ("apiserver-proxy", "kube-proxy", "metrics-server", "node-problem-detector", TUNNEL, "vpn-shoot")
"""Components of a Shoot with workers that may be left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Omitted:
    seed: Annotated[
        tuple[str, ...],
        setting(
            "Components of the seed. Without `istio`, the API server of each Shoot has its own load balancer.",
            each(one_of(*COMPONENTS)),
        ),
    ] = ()
    shoots: Annotated[tuple[str, ...], setting("Components of Shoots.", each(one_of(*SHOOT_COMPONENTS)))] = ()
    pod_webhooks: Annotated[bool, setting("Whether Shoots get no webhooks of their resource manager for Pods.")] = False


def _known(names: Sequence[str]) -> Check:
    def errors(path: str, value: Mapping[str, str]) -> Iterator[FieldError]:
        for name in value:
            if name not in names:
                yield not_supported(path, name, names)

    return Check(f"of {', '.join(names)}", errors)


@dataclass(frozen=True, slots=True, kw_only=True)
class Images:
    resource_manager: Annotated[
        str, setting("Image of the resource manager of the seed; required if it is deployed.")
    ] = ""
    kubernetes: Annotated[
        str,
        setting(
            "Repository prefix of the Kubernetes images, such as the part before `/kube-apiserver`; required "
            "for Shoots."
        ),
    ] = ""
    workers: Annotated[
        dict[str, str],
        setting(
            "Images of components for Shoots with workers, by [name](gardenlet-shoots.md#workers); all are "
            "required. `hyperkube` has no tag: the Kubernetes version is its tag.",
        ),
    ] = field(default_factory=dict)
    programs: Annotated[
        dict[str, str],
        setting(
            "Images of Kubernetes programs in other repositories than `kubernetes`, by name; without a tag, "
            "like `hyperkube`.",
            _known(KUBERNETES_PROGRAMS),
        ),
    ] = field(default_factory=dict)
    pause: Annotated[str, setting("Image of pods that reserve capacity for control planes; empty: no such pods.")] = ""
    etcd_druid: Annotated[str, setting("Image of etcd-druid; empty: not deployed.")] = ""
    ingress_default_backend: Annotated[str, setting("Image of the default backend of the ingress controller.")] = ""
    istio_discovery: Annotated[str, setting("Image of istiod; Istio is only deployed if `istioProxy` is set, too.")] = (
        ""
    )
    istio_proxy: Annotated[str, setting("Image of the ingress gateway.")] = ""
    kube_state_metrics: Annotated[str, setting("Image of kube-state-metrics; empty: not deployed.")] = ""
    nginx_ingress_controller: Annotated[
        str, setting("Image of the ingress controller, which is only deployed if `ingressDefaultBackend` is set, too.")
    ] = ""
    prometheus_operator: Annotated[
        str, setting("Image of the Prometheus operator, which is only deployed if `configReloader` is set, too.")
    ] = ""
    config_reloader: Annotated[str, setting("Image that reloads the configuration of Prometheus.")] = ""
    prometheus: Annotated[str, setting("Image of the Prometheus servers; empty: not deployed.")] = ""
    plutono: Annotated[
        str, setting("Image of Plutono, which is only deployed if `dashboardRefresher` is set, too.")
    ] = ""
    dashboard_refresher: Annotated[str, setting("Image that loads the dashboards of Plutono.")] = ""
    vpa_admission_controller: Annotated[
        str,
        setting(
            "Image of the vertical pod autoscaler's webhook; the autoscaler is only deployed if all three "
            "images are set."
        ),
    ] = ""
    vpa_recommender: Annotated[str, setting("Image of the vertical pod autoscaler's recommender.")] = ""
    vpa_updater: Annotated[str, setting("Image of the vertical pod autoscaler's updater.")] = ""
    vpn_authorization_server: Annotated[
        str, setting("Image of the server that authorizes tunnels to Shoots; empty: not deployed.")
    ] = ""


def _known_features(path: str, value: Mapping[str, Any]) -> Iterator[FieldError]:
    for name in value:
        if name not in FEATURES:
            yield forbidden(path, f"unrecognized feature gate: {name}")


@dataclass(frozen=True, kw_only=True)
class _Connections:
    garden_client_connection: Annotated[GardenClientConnection, setting("Connection to the garden cluster.")] = (
        GardenClientConnection()
    )
    seed_client_connection: Annotated[ClientConnection, setting("Connection to the seed cluster.")] = field(
        default_factory=partial(ClientConnection, qps=50.0, burst=100)
    )
    shoot_client_connection: Annotated[ClientConnection, setting("Connections to the clusters of Shoots.")] = field(
        default_factory=partial(ClientConnection, qps=50.0, burst=100)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GardenletConfiguration(ElectingConfiguration, _Connections):
    leader_election: Annotated[
        LeaderElection, setting("Leader election of the controllers, by a Lease in the seed cluster.")
    ] = field(
        default_factory=partial(LeaderElection, resource_name="gardenlet-leader-election", resource_namespace="garden")
    )
    server: Annotated[Server, setting("Servers of the program.")] = field(
        default_factory=partial(Server, health_probes=HTTPServer(port=2728), metrics=HTTPServer(port=2729))
    )
    feature_gates: Annotated[
        dict[str, bool], setting("Feature gates by name.", Check("known names", _known_features))
    ] = field(default_factory=dict)
    controllers: Annotated[Controllers, setting("Controllers of the program.")] = field(default_factory=Controllers)
    resources: Annotated[Resources, setting("Capacity of the seed.")] = field(default_factory=Resources)
    seed_config: Annotated[
        dict[str, Any] | None,
        setting("Seed to register, with `metadata` and `spec`; required.", Check("a Seed", _seed_errors)),
    ] = None
    logging: Annotated[Logging, setting("Logs of control planes; not implemented, a warning is logged if enabled.")] = (
        Logging()
    )
    sni: Annotated[SNI, setting("Exposure of the API servers of Shoots.")] = field(default_factory=SNI)
    exposure_class_handlers: Annotated[
        tuple[ExposureClassHandler, ...], setting("Additional ways to expose API servers of Shoots.")
    ] = ()
    etcd_config: Annotated[dict[str, Any] | None, setting("Settings of etcd-druid.")] = None
    monitoring: Annotated[Monitoring, setting("Monitoring of Shoots.")] = Monitoring()
    images: Annotated[Images, setting("Images of components in the seed.")] = Images()
    omit: Annotated[Omitted, setting("Components that are not deployed.")] = Omitted()
    etcd_server_names: Annotated[
        tuple[str, ...],
        setting("Further names and addresses of the etcds of Shoots, in their certificates.", each(object_name)),
    ] = ()
    node_toleration: Annotated[
        NodeToleration, setting("Default tolerations of pods for nodes that are not ready or unreachable.")
    ] = NodeToleration()

    def errors(self, path: str) -> Iterator[FieldError]:
        if self.seed_config is None:
            yield required(join(path, "seedConfig"), "seed config must be set")

    def warnings(self) -> Iterator[str]:
        if self.logging.enabled:
            yield "logging.enabled: ignored, since logs of control planes are not collected"
        for threshold in self.controllers.seed_care.condition_thresholds:
            if threshold.type in SHOOT_CONDITIONS:
                yield (
                    f"controllers.seedCare.conditionThresholds: {threshold.type} is ignored, since it is a condition of"
                    " Shoots; put it into controllers.shootCare.conditionThresholds"
                )

    def has_feature(self, name: str) -> bool:
        """Whether a feature gate is on.

        Raises:
            KeyError: there is no such feature gate.
        """
        return self.feature_gates.get(name, FEATURES[name])

    def deploys(self, component: str, images: Iterable[str]) -> bool:
        """Whether an optional component of the seed is selected, and all of its images are set."""
        return component not in self.omit.seed and all(getattr(self.images, each) for each in images)

    @property
    def has_gateways(self) -> bool:
        """Whether Shoots share ingress gateways of the seed; these may be deployed by others."""
        return "istio" not in self.omit.seed

    @property
    def has_tunnels(self) -> bool:
        """Whether API servers of Shoots reach nodes through a tunnel."""
        return TUNNEL not in self.omit.shoots

    @property
    def seed(self) -> Object:
        """The configured Seed, with `metadata` and `spec`."""
        assert self.seed_config is not None  # validated
        return self.seed_config

    @property
    def seed_name(self) -> str:
        return text(mapping_at(self.seed, "metadata")["name"])
