"""Names that are part of the API between Secrets and the token requestor."""

GROUP = "resources.gardener.cloud"

# --- labels of source Secrets
PURPOSE = f"{GROUP}/purpose"
PURPOSE_TOKEN_REQUESTOR = "token-requestor"
CLASS = f"{GROUP}/class"

# --- annotations of source Secrets
NAME = f"serviceaccount.{GROUP}/name"
NAMESPACE = f"serviceaccount.{GROUP}/namespace"
LABELS = f"serviceaccount.{GROUP}/labels"
EXPIRATION = f"serviceaccount.{GROUP}/token-expiration-duration"
RENEW_TIMESTAMP = f"serviceaccount.{GROUP}/token-renew-timestamp"
INJECT_CA_BUNDLE = f"serviceaccount.{GROUP}/inject-ca-bundle"
TARGET_NAME = f"token-requestor.{GROUP}/target-secret-name"
TARGET_NAMESPACE = f"token-requestor.{GROUP}/target-secret-namespace"

ANNOTATIONS = (
    NAME,
    NAMESPACE,
    LABELS,
    EXPIRATION,
    RENEW_TIMESTAMP,
    INJECT_CA_BUNDLE,
    TARGET_NAME,
    TARGET_NAMESPACE,
)

# --- keys in the data of Secrets
TOKEN = "token"
KUBECONFIG = "kubeconfig"
CA_BUNDLE = "bundle.crt"

DATA = (TOKEN, KUBECONFIG, CA_BUNDLE)

# --- reasons of events about source Secrets
INVALID = "TokenRequestInvalid"
FAILED = "TokenRequestFailed"
KUBECONFIG_REMOVED = "KubeconfigRemoved"
