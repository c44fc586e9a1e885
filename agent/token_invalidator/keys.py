"""Names that the controller and the webhook have in common, and those of Kubernetes."""

GROUP = "resources.gardener.cloud"

# --- labels of Secrets
PURPOSE = f"{GROUP}/purpose"
PURPOSE_TOKEN_INVALIDATOR = "token-invalidator"
CONSIDER = f"token-invalidator.{GROUP}/consider"

# --- labels of ServiceAccounts
SKIP = f"token-invalidator.{GROUP}/skip"

# --- of Secrets that Kubernetes fills with a token
SERVICE_ACCOUNT_NAME = "kubernetes.io/service-account.name"
SERVICE_ACCOUNT_UID = "kubernetes.io/service-account.uid"
SECRET_TYPE = "kubernetes.io/service-account-token"
