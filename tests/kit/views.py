"""All views of all programs, a plausible object that has whatever they read, and what each reads of it.

Views that are constants are found by looking at all modules. Those that are made at work are here by their place in the
code; a test compares.
"""

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any, cast

import yaml

import agent
import kube
import webhooks
from agent.gardenlet.bootstrap.rotation import seen
from agent.gardenlet.common import views as gardenlet
from agent.gardenlet.extensions.controller_installation import required
from agent.gardenlet.extensions.controller_installation.install import deployments
from agent.gardenlet.shoot.main import corrections
from agent.gardenlet.tokens.workload_identities.identity_secret import IdentitySecret
from agent.resource_manager.health.controller import bucket_of_pods
from agent.resource_manager.health.projections import project_health, project_progress
from agent.resource_manager.managed_resource.source import Source
from agent.shared.network_policy import istio
from agent.shared.token_requestor.token_secret import TokenSecret
from gardener import keys
from gardener.api.extensions import INFRASTRUCTURES
from gardener.api.garden import CONTROLLER_DEPLOYMENTS
from gardener.health.checks import expressions
from gardener.health.checks.expressions import Expression
from gardener.health.checks.registry import _RULES, Rules
from gardener.managed_resource.autoscaling import scaled_by_hpa, scaled_by_hvpa
from kit.hostile import Place
from kube.apply.kinds import ManagedKinds
from kube.apply.live_objects import LiveObjects
from kube.objects import Object, resource_version, uid
from kube.resources import CONFIG_MAPS, PODS, SECRETS, SERVICE_ACCOUNTS, Resource
from kube.runtime.cache import Caches, Store, View, without_managed_fields
from kube.runtime.client import Client
from kube.runtime.discovery import Discovery
from webhooks.garden.lookups import VIEWS, bare
from webhooks.handlers import system_components_config

SAMPLE: Object = yaml.safe_load("""
apiVersion: v1
kind: Sample
metadata:
  name: name
  namespace: kube-system
  uid: uid
  resourceVersion: '7'
  generation: 2
  finalizers: [example.com/keep]
  labels: &labels
    node.gardener.cloud/critical-component: 'true'
    networking.resources.gardener.cloud/to-dns-tcp-53: allowed
    networking.resources.gardener.cloud/service-name: service
    networking.resources.gardener.cloud/service-namespace: ns
    gardener.cloud/role: istio-ingress
    autoscaling.gardener.cloud/eviction-requirements: managed-by-controller
    rbac.gardener.cloud/aggregate-to-extension-role: one
    resources.gardener.cloud/purpose: token-requestor
    resources.gardener.cloud/class: shoot
    token-invalidator.resources.gardener.cloud/skip: 'true'
    worker.gardener.cloud/gardener-node-agent-secret-name: agent
    resources.gardener.cloud/history-of: name
    security.gardener.cloud/purpose: workload-identity-token-requestor
    care.gardener.cloud/condition-type: ControlPlaneHealthy
    name: ca
    valid-until-time: '1800000000'
  annotations:
    gardener.cloud/description: Allows traffic.
    resources.gardener.cloud/origin: cluster:ns/name
    resources.gardener.cloud/skip-health-check: 'false'
    resources.gardener.cloud/revision: '3'
    resources.gardener.cloud/revision-digest: digest
    kubernetes.io/service-account.name: account
    kubernetes.io/service-account.uid: uid
    node.gardener.cloud/wait-for-csi-node-x: driver
    node-agent.gardener.cloud/reconciliation-delay: 1s
    networking.istio.io/exportTo: '*, ns'
    networking.resources.gardener.cloud/from-world-to-ports: '[{"port":80}]'
    networking.resources.gardener.cloud/pod-label-selector-namespace-alias: alias
    networking.resources.gardener.cloud/namespace-selectors: '[{"matchLabels":{"a":"b"}}]'
    networking.resources.gardener.cloud/from-all-allowed-ports: '[{"port":80}]'
    gardener.cloud/operation: keepalive
    eviction-requirements.autoscaling.gardener.cloud/downscale-restriction: never
    shoot.gardener.cloud/maintenance-window: 220000+0000,230000+0000
    scheduling.gardener.cloud/cloudprofiles: local
    authorization.gardener.cloud/extensions-serviceaccount-selector: '{}'
    migration.controllerdeployment.gardener.cloud/providerConfig: '{}'
    migration.controllerdeployment.gardener.cloud/type: helm
  ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, uid: uid, controller: true}]
  creationTimestamp: '2000-01-01T00:00:00Z'
  deletionTimestamp: '2000-01-01T00:00:00Z'
  managedFields: []
type: Opaque
helm: {rawChart: YQ==}
injectGardenKubeconfig: true
involvedObject: {apiVersion: v1, kind: Pod}
eventTime: '2000-01-01T00:00:00.000000Z'
lastTimestamp: '2000-01-01T00:00:00Z'
series: {lastObservedTime: '2000-01-01T00:00:00.000000Z'}
subsets: [{addresses: [{ip: 10.0.0.1}], ports: [{port: 443, protocol: TCP}]}]
data: {token: dG9rZW4=, kubeconfig: e30=, bundle.crt: ''}
secrets: [{name: secret}]
automountServiceAccountToken: false
spec:
  template:
    metadata: {labels: *labels}
    spec:
      nodeName: node
      nodeSelector: {a: b}
      affinity:
        nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: []}]}}
      tolerations: [{key: a, operator: Exists}]
      hostNetwork: true
      maxReplicas: 3
  taints: [{key: node.gardener.cloud/critical-components-not-ready, value: v, effect: NoSchedule}]
  drivers: [{name: driver}]
  nodeName: node
  selector: {matchLabels: {app: name}, matchExpressions: [{key: a, operator: In, values: [b]}]}
  ports: [{name: http, port: 80, targetPort: 8080, protocol: TCP, appProtocol: http2}]
  rules: [{http: {paths: [{backend: {service: {name: service, port: {name: http, number: 80}}}}]}}]
  gateways: [ns/gateway, mesh]
  http: &routes [{route: [{destination: {host: service.ns.svc.cluster.local, port: {number: 80}}}]}]
  tls: *routes
  tcp: *routes
  host: service.ns.svc.cluster.local
  exportTo: [.]
  trafficPolicy:
    connectionPool: &pool {http: {h2UpgradePolicy: UPGRADE, useClientProtocol: false}}
    portLevelSettings: [{port: {number: 80}, connectionPool: *pool}]
  subsets: []
  workloadSelector: {}
  configPatches: []
  secretRefs: [{name: secret}]
  scaleTargetRef: &deployment {apiVersion: apps/v1, kind: Deployment, name: name}
  targetRef: *deployment
  maxReplicas: 3
  updatePolicy: {evictionRequirements: [{resources: [cpu], changeRequirement: TargetHigherThanRequests}]}
  hpa: {deploy: true, template: {spec: {maxReplicas: 3}}}
  vpa: {deploy: true}
  clusterIPs: [10.0.0.1]
  clusterIP: 10.0.0.1
  signerName: kubernetes.io/kubelet-serving
  replicas: 1
  paused: true
  suspend: false
  completions: 1
  containers: [{name: c, readinessProbe: {periodSeconds: 1}}]
  progressDeadlineSeconds: 600
  ttlSecondsAfterFinished: 1
  updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 10%, partition: 1}}
  type: LoadBalancer
  volumes: []
  restartPolicy: Always
  shootRef: {name: shoot}
  class: seed
  shoot:
    metadata: {name: shoot, namespace: ns, uid: uid}
    spec: {networking: {nodes: 10.0.0.0/16, pods: 10.1.0.0/16, services: 10.2.0.0/16, ipFamilies: [IPv4]}}
    status: {networking: {nodes: [10.0.0.0/16], pods: [10.1.0.0/16], services: [10.2.0.0/16]}}
  seedName: seed
  bucketName: bucket
  hard: {pods: '1'}
  renewTime: '2000-01-01T00:00:00.000000Z'
  kubernetes:
    version: 1.30.1
    verticalPodAutoscaler: {enabled: true}
    kubeAPIServer:
      featureGates: {TopologyAwareHints: false}
      admissionPlugins: [{name: ImagePolicyWebhook, kubeconfigSecretName: policy}]
    kubeControllerManager: {featureGates: {TopologyAwareHints: false}}
    kubeProxy: {featureGates: {TopologyAwareHints: false}}
  provider:
    type: local
    region: local
    zones: [a]
    workersSettings: {}
    workers: [{name: pool, machine: {type: large}, maximum: 2}]
  networks:
    nodes: 10.0.0.0/16
    pods: &pods 10.1.0.0/16
    services: &services 10.2.0.0/16
    shootDefaults: {pods: *pods, services: *services}
  schedulerName: default-scheduler
  seedSelector: {matchLabels: {a: b}}
status:
  allocatable: {shoots: '10'}
  cloudProfileSpec: {type: local, seedSelector: {matchLabels: {a: b}}}
  lastOperation: {type: Create, state: Pending, description: d, lastUpdateTime: '2000-01-01T00:00:00Z'}
  seedName: seed
  phase: Running
  reason: NodeLost
  lastError: no backup
  conditions:
  - {type: Ready, status: 'True', reason: PodCompleted, message: m, observedGeneration: 2}
  - {type: Complete, status: 'True', reason: PodCompleted, message: m, observedGeneration: 2}
  - {type: Available, status: 'True', reason: PodCompleted, message: m, observedGeneration: 2}
  - {type: PodScheduled, status: 'False', reason: Unschedulable, message: m, observedGeneration: 2}
  - {type: ReplicaFailure, status: 'False', reason: FailedCreate, message: m, observedGeneration: 2}
  - {type: Progressing, status: 'True', reason: PodCompleted, message: m, observedGeneration: 2}
  - {type: NamesAccepted, status: 'True', reason: PodCompleted, message: m, observedGeneration: 2}
  - {type: Established, status: 'True', reason: PodCompleted, message: m, observedGeneration: 2}
  - {type: Reconciled, status: 'True', reason: PodCompleted, message: m, observedGeneration: 2}
  certificate: ''
  lastHeartbeatTimestamp: '2000-01-01T00:00:00Z'
  expirationTimestamp: '2000-01-01T00:00:00Z'
  observedGeneration: 2
  replicas: 1
  readyReplicas: 1
  availableReplicas: 1
  updatedReplicas: 1
  desiredNumberScheduled: 1
  currentNumberScheduled: 1
  updatedNumberScheduled: 1
  numberUnavailable: 1
  numberMisscheduled: 0
  state: active
  loadBalancer: {ingress: [{ip: 10.0.0.1}]}
  succeeded: 0
  active: 1
  failed: 0
  initContainerStatuses: []
  containerStatuses:
  - name: c
    restartCount: 1
    ready: false
    state: {waiting: {reason: CrashLoopBackOff, message: m}, running: {}, terminated: {}}
    lastState: {terminated: {exitCode: 1, reason: Error, message: m}}
""")


class OnlyViews(Caches):
    """Holds views and watches nothing."""

    def _start(self, view: View[Any], needed_at_start: bool) -> Any:
        class Running:
            store = Store(view)
            users = 0

        return Running()

    def views(self) -> list[View[Any]]:
        return list(self._running)


NO_CLIENT = cast("Client", None)
RULES = Rules(
    kstatus=True,
    configured={
        ("example.com", "Gadget"): expressions.rule(
            "example.com", "Gadget", {"current": Expression("status.phase == 'Running'")}
        )
    },
)


def of_managed_kinds() -> list[View[Any]]:
    """Of all kinds that have rules, by whatever, and of one that has none."""
    caches = OnlyViews(NO_CLIENT)
    kinds = ManagedKinds(caches, label_selector="")
    LiveObjects(
        client=NO_CLIENT, discovery=Discovery(NO_CLIENT), kinds=kinds, origin=keys.ORIGIN, on_change=lambda _: None
    )
    for project in (project_health, project_progress):
        kinds.part(
            lambda resource, obj, project=project: project(resource, obj, cluster_id="cluster", rules=RULES),  # type: ignore[misc]
            on_change=lambda *_: None,
            index=bucket_of_pods,
        )
    ruled = [
        Resource(rule.group, version, rule.kind, rule.kind.lower(), namespaced=True)
        for rule in _RULES.values()
        for version in rule.versions
    ]
    by_status = [Resource("example.com", "v1", kind, kind.lower(), namespaced=True) for kind in ("Widget", "Gadget")]
    for resource in (CONFIG_MAPS, *ruled, *by_status):
        kinds._start(resource)
    return caches.views()


def of_the_source() -> list[View[Any]]:
    caches = OnlyViews(NO_CLIENT)
    Source(client=NO_CLIENT, caches=caches, memory=1000)
    return caches.views()


MADE_AT_WORK: dict[str, list[View[Any]]] = {
    "agent.gardenlet.extensions.bastion: without_managed_fields": [View(SECRETS, without_managed_fields)],
    "agent.gardenlet.bootstrap.rotation: seen": [View(SECRETS, seen)],
    "agent.gardenlet.extensions.controller_installation.install.deployments: content": [
        View(CONTROLLER_DEPLOYMENTS, deployments.content)
    ],
    "agent.gardenlet.extensions.controller_installation.required: _type_of": [required.types_view(INFRASTRUCTURES)],
    "agent.gardenlet.shoot.main.corrections: content": [View(SECRETS, corrections.content)],
    "agent.gardenlet.managed_seeds.self_upgrade.creation: without_managed_fields": [
        View(CONFIG_MAPS, without_managed_fields)
    ],
    "agent.gardenlet.common.views: without_managed_fields": [gardenlet.backup_entries_view("seed")],
    "kube.apply.kinds: partial(self._kept, resource)": of_managed_kinds(),
    "kube.runtime.waiting: without_managed_fields": [View(SECRETS, without_managed_fields)],
    "agent.resource_manager.managed_resource.scaling: project": [View(PODS, scaled_by_hpa), View(PODS, scaled_by_hvpa)],
    "agent.resource_manager.managed_resource.source: self._remember": of_the_source(),
    "agent.gardenlet.tokens.workload_identities.controller: IdentitySecret.of": [View(SECRETS, IdentitySecret.of)],
    "agent.shared.network_policy.istio: GatewayPod.of": [View(PODS, istio.GatewayPod.of)],
    "agent.shared.token_requestor.watches: uid": [View(SERVICE_ACCOUNTS, uid)],
    "agent.shared.token_requestor.controller: TokenSecret.of": [View(SECRETS, TokenSecret.of)],
    "agent.shared.token_requestor.watches: resource_version": [View(SECRETS, resource_version)],
    "webhooks.garden.lookups: bare": [view for view in VIEWS.values() if view.project is bare],
    "webhooks.garden.lookups: without_managed_fields": [view for view in VIEWS.values() if view.project is not bare],
    "webhooks.handlers.system_components_config: tolerations": [system_components_config.view({})],
}


def modules() -> Iterator[str]:
    for package in (agent, kube, webhooks):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith("__main__"):
                yield found.name


def constants() -> Iterator[tuple[str, View[Any]]]:
    for name in modules():
        for variable, value in vars(importlib.import_module(name)).items():
            if isinstance(value, View):
                yield f"{name}.{variable}", value


def views() -> Iterator[tuple[str, View[Any]]]:
    """With names."""
    seen: set[int] = set()
    for name, view in constants():
        if id(view) not in seen:
            seen.add(id(view))
            yield name, view
    for name, made in MADE_AT_WORK.items():
        for view in made:
            yield f"{name} of {view.resource.kind}", view


class Read(dict[str, Any]):
    """Notes the places of the values that are looked at; those of a list are, when it is."""

    def __init__(self, content: Object, path: Place, read: set[Place]) -> None:
        super().__init__(content)
        self._path, self._read = path, read

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default  # noqa: SIM401 - it is what is defined here

    def __getitem__(self, name: str) -> Any:
        return self._noted((*self._path, name), super().__getitem__(name))

    def _noted(self, path: Place, value: Any) -> Any:
        self._read.add(path)
        if isinstance(value, list):
            return [self._noted((*path, index), each) for index, each in enumerate(value)]
        return Read(value, path, self._read) if isinstance(value, dict) else value

    # Overridden, so that copies are made by way of `__getitem__`.
    def __iter__(self) -> Iterator[str]:
        return super().__iter__()

    def items(self) -> Any:
        return [(name, self[name]) for name in self]

    def values(self) -> Any:
        return [self[name] for name in self]


def read_by(view: View[Any], sample: Object = SAMPLE) -> set[Place]:
    """The places of all that the projection and the indexes look at."""
    read: set[Place] = set()
    kept = view.project(Read(sample, (), read))
    for _, indexer in view.indexes:
        list(indexer(kept))
    return read
