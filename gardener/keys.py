"""Labels, annotations, finalizers, and names of users and groups: each said once, here.

Reasons of Events, and names that Kubernetes defines, stand where they are used.
"""

GROUP = "resources.gardener.cloud"

# --- on many objects
ROLE = "gardener.cloud/role"
"""A label."""
ROLE_ISTIO_INGRESS = "istio-ingress"
ROLE_OPERATING_SYSTEM_CONFIG = "operating-system-config"
ROLE_SHOOT = "shoot"
OPERATION = "gardener.cloud/operation"
"""An annotation, which asks for something once."""
OPERATION_RECONCILE = "reconcile"
OPERATION_RESTORE = "restore"
OPERATION_MIGRATE = "migrate"
OPERATION_WAIT_FOR_STATE = "wait-for-state"
GARDENER_DESCRIPTION = "gardener.cloud/description"
CONFIRM_DELETION = "confirmation.gardener.cloud/deletion"
DELETION_PROTECTED = "gardener.cloud/deletion-protected"
"""A label of CustomResourceDefinitions."""
EXPOSURE_CLASS_HANDLER = "handler.exposureclass.gardener.cloud/name"

# --- on ManagedResources
FINALIZER = f"{GROUP}/gardener-resource-manager"
"""Of the class that is the default; others have their name at its end."""
IMPERSONATED_SERVICE_ACCOUNT = f"{GROUP}/service-account-name"
"""As whom its objects are written; an extension of ours."""
IGNORE_REASON = f"{GROUP}/ignore-reason"
IGNORED_BY = f"{GROUP}/ignored-by"
IGNORED_SINCE = f"{GROUP}/ignored-since"

# --- on ManagedResources and on objects in manifests
IGNORE = f"{GROUP}/ignore"

# --- on objects in manifests
MODE = f"{GROUP}/mode"
MODE_IGNORE = "Ignore"
PRESERVE_REPLICAS = f"{GROUP}/preserve-replicas"
PRESERVE_RESOURCES = f"{GROUP}/preserve-resources"
DELETE_ON_INVALID_UPDATE = f"{GROUP}/delete-on-invalid-update"
DELETION_PROPAGATION_ON_INVALID_UPDATE = f"{GROUP}/deletion-propagation-on-invalid-update"

# --- on live objects
KEEP_OBJECT = f"{GROUP}/keep-object"
FINALIZE_DELETION_AFTER = f"{GROUP}/finalize-deletion-after"
CLAIMED_BY = f"{GROUP}/claimed-by"
"""The origin of a ManagedResource of another agent, which waits for the object."""
SKIP_HEALTH_CHECK = f"{GROUP}/skip-health-check"

# --- on references in the status of ManagedResources
VOLUME_CLAIMS = f"{GROUP}/volume-claims"
"""On that of a StatefulSet that is being removed: its volume claims, which go with it."""

# --- what is stamped on every applied object
FIELD_MANAGER = "gardener-resource-manager"
"""The name under which the API server records who set a field; the same as the original's."""
MANAGED_BY = f"{GROUP}/managed-by"
ORIGIN = f"{GROUP}/origin"
DESCRIPTION = f"{GROUP}/description"
DESCRIPTION_TEXT = (
    "DO NOT EDIT - This resource is managed by gardener-resource-manager.\n"
    "Any modifications are discarded and the resource is returned to the original state."
)

# --- garbage collection
GARBAGE_COLLECTABLE = f"{GROUP}/garbage-collectable-reference"
"""The label of what may be collected; its value is `true`, exactly."""
REFERENCE_PREFIX = f"reference.{GROUP}/"
"""Of annotations that refer to it."""

# --- labels of Secrets with tokens
PURPOSE = f"{GROUP}/purpose"
PURPOSE_TOKEN_INVALIDATOR = "token-invalidator"
PURPOSE_TOKEN_REQUESTOR = "token-requestor"
CLASS = f"{GROUP}/class"
TOKEN_INVALIDATOR_CONSIDER = f"token-invalidator.{GROUP}/consider"
TOKEN_INVALIDATOR_SKIP = f"token-invalidator.{GROUP}/skip"
"""A label of ServiceAccounts."""

# --- annotations of Secrets that ask for a token
SERVICE_ACCOUNT_NAME = f"serviceaccount.{GROUP}/name"
SERVICE_ACCOUNT_NAMESPACE = f"serviceaccount.{GROUP}/namespace"
SERVICE_ACCOUNT_LABELS = f"serviceaccount.{GROUP}/labels"
TOKEN_EXPIRATION_DURATION = f"serviceaccount.{GROUP}/token-expiration-duration"
TOKEN_RENEW_TIMESTAMP = f"serviceaccount.{GROUP}/token-renew-timestamp"
INJECT_CA_BUNDLE = f"serviceaccount.{GROUP}/inject-ca-bundle"
TARGET_SECRET_NAME = f"token-requestor.{GROUP}/target-secret-name"
TARGET_SECRET_NAMESPACE = f"token-requestor.{GROUP}/target-secret-namespace"

# --- network policies
NETWORKING_PREFIX = f"networking.{GROUP}/"
POLICY_SERVICE_NAME = f"{NETWORKING_PREFIX}service-name"
"""A label of NetworkPolicies: the Service that they are made for."""
POLICY_SERVICE_NAMESPACE = f"{NETWORKING_PREFIX}service-namespace"
NAMESPACE_SELECTORS = f"{NETWORKING_PREFIX}namespace-selectors"
"""An annotation of Services, as the next ones are."""
NAMESPACE_ALIAS = f"{NETWORKING_PREFIX}pod-label-selector-namespace-alias"
FROM_WORLD = f"{NETWORKING_PREFIX}from-world-to-ports"
FROM_PREFIX, FROM_SUFFIX = f"{NETWORKING_PREFIX}from-", "-allowed-ports"
TO_PREFIX = f"{NETWORKING_PREFIX}to-"
"""Of labels of client pods."""
ALLOWED = "allowed"
"""Their value."""

# --- nodes
CRITICAL_COMPONENTS_NOT_READY = "node.gardener.cloud/critical-components-not-ready"
"""Key of the taint."""
CRITICAL_COMPONENT = "node.gardener.cloud/critical-component"
"""Label of Pods, and of DaemonSets and their pod templates; its value is `true`."""
WAIT_FOR_CSI_NODE_PREFIX = "node.gardener.cloud/wait-for-csi-node-"
"""Of annotations of Pods whose values are names of storage drivers."""
RECONCILIATION_DELAY = "node-agent.gardener.cloud/reconciliation-delay"
NODE_AGENT_SECRET_NAME = "worker.gardener.cloud/gardener-node-agent-secret-name"
"""A label: the Secret with the configuration of the agent on this Node."""
OSC_SERIAL = "reconciliation.osc.node-agent.gardener.cloud/serial"
MACHINE_NODE = "node"
"""Label of a Machine: the name of the Node that it became."""

# --- users and groups
NODE_AGENT_USER_PREFIX = "gardener.cloud:node-agent:machine:"
GARDENADM_USER_PREFIX = "gardener.cloud:gardenadm:shoot:"
NODE_AGENTS_GROUP = "gardener.cloud:node-agents"
SHOOTS_GROUP = "gardener.cloud:system:shoots"

# --- webhooks
HIGH_AVAILABILITY_PREFIX = f"high-availability-config.{GROUP}/"
HIGH_AVAILABILITY_CONSIDER = f"{HIGH_AVAILABILITY_PREFIX}consider"
"""Label of Namespaces whose workloads the webhook looks at."""
HIGH_AVAILABILITY_SKIP = f"{HIGH_AVAILABILITY_PREFIX}skip"
"""Label of workloads that it leaves alone."""
PROJECTED_TOKEN_EXPIRATION = f"projected-token-mount.{GROUP}/expiration-seconds"
VPA_UPDATED_IN_PLACE = f"vpa-in-place-updates.{GROUP}/mutated"
APISERVER_PROXY_INJECT = "apiserver-proxy.networking.gardener.cloud/inject"
REMEDIATION_EXCLUDE = "remediation.webhook.shoot.gardener.cloud/exclude"
