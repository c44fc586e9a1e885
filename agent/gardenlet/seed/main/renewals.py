"""Renewals that a user requests by an annotation of the Seed: new tokens and a new certificate.

The annotation is removed when the work is done, unless it has changed; after a crash in between, the work is repeated.
"""

from agent.gardenlet.flow.graph import Task
from agent.gardenlet.seed.main.operation import SeedOperation
from agent.gardenlet.seed.main.skipping import is_not_requested
from gardener import keys
from gardener.api.garden import SEEDS
from kube.apply.application import for_each
from kube.errors import Invalid, NotFound
from kube.objects import Key, Object, annotations, key, uid
from kube.paths import pointer_step
from kube.resources import SECRETS
from kube.runtime.client import JSON_PATCH, Form, Selection
from kube.runtime.controller import TerminalError

_OF_SERVICE_ACCOUNTS = f"{keys.CLASS}={keys.CLASS_GARDEN}"
_OF_WORKLOAD_IDENTITIES = f"{keys.SECURITY_PURPOSE}={keys.PURPOSE_WORKLOAD_IDENTITY_TOKEN_REQUESTOR}"


async def renew_access_secrets(operation: SeedOperation) -> None:
    """Renew tokens of the garden's ServiceAccounts."""
    await _expire(operation, _OF_SERVICE_ACCOUNTS, keys.TOKEN_RENEW_TIMESTAMP)
    await _done(operation, keys.OPERATION_RENEW_ACCESS_SECRETS)


async def renew_workload_identity_tokens(operation: SeedOperation) -> None:
    """Renew tokens of WorkloadIdentities."""
    await _expire(operation, _OF_WORKLOAD_IDENTITIES, keys.WORKLOAD_IDENTITY_RENEW_TIMESTAMP)
    await _done(operation, keys.OPERATION_RENEW_WORKLOAD_IDENTITY_TOKENS)


async def renew_kubeconfig(operation: SeedOperation) -> None:
    """Renew the certificate of this process for the garden.

    Raises:
        TerminalError: no Secret is configured.
    """
    secret = operation.config.garden_client_connection.kubeconfig_secret
    if secret is None:
        requested = f"{keys.OPERATION}={keys.OPERATION_RENEW_KUBECONFIG}"
        raise TerminalError(
            f"the kubeconfig for the garden can't be renewed, since gardenClientConnection.kubeconfigSecret is not set "
            f"in the configuration of the gardenlet: remove the annotation {requested} from Seed {operation.name}"
        )
    own = Key(secret.namespace, secret.name)
    await operation.cluster.client.annotate(SECRETS, own, {keys.OPERATION: keys.OPERATION_RENEW})
    await _done(operation, keys.OPERATION_RENEW_KUBECONFIG)


async def _expire(operation: SeedOperation, label_selector: str, annotation: str) -> None:
    """Remove the time of the next renewal from Secrets, so that their tokens are renewed at once."""
    client = operation.cluster.client

    async def expire(secret: Object) -> None:
        name = key(secret)
        body = {"metadata": {"uid": uid(secret), "annotations": {annotation: None}}}
        await client.patch_if_exists(SECRETS, name, body)

    listed = await client.list(SECRETS, Selection(label_selector=label_selector), form=Form.METADATA)
    await for_each(expire, [each for each in listed if annotation in annotations(each)])


async def _done(operation: SeedOperation, requested: str) -> None:
    path = f"/metadata/annotations/{pointer_step(keys.OPERATION)}"
    patch = [{"op": "test", "path": path, "value": requested}, {"op": "remove", "path": path}]
    try:
        await operation.garden.client.patch(SEEDS, operation.name, patch, content_type=JSON_PATCH)
    except (NotFound, Invalid):
        return  # the annotation has changed meanwhile


TASKS = (
    Task(
        "access-secrets",
        "Renewing garden access secrets",
        renew_access_secrets,
        after=["cluster-identity"],
        unless=is_not_requested(keys.OPERATION_RENEW_ACCESS_SECRETS),
    ),
    Task(
        "workload-identity-tokens",
        "Renewing workload identity tokens",
        renew_workload_identity_tokens,
        after=["cluster-identity"],
        unless=is_not_requested(keys.OPERATION_RENEW_WORKLOAD_IDENTITY_TOKENS),
    ),
    Task(
        "kubeconfig",
        "Renewing garden kubeconfig",
        renew_kubeconfig,
        unless=is_not_requested(keys.OPERATION_RENEW_KUBECONFIG),
    ),
)
