"""What a person asks for by an annotation of the Seed: new tokens and a new certificate.

The annotation goes when the work is done, if it still says so; a crash in between leaves it, and all is done once more.
"""

from agent.gardenlet.seed.main.operation import SeedOperation
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
    """Tokens of ServiceAccounts of the garden. Raises KubeError."""
    await _expire(operation, _OF_SERVICE_ACCOUNTS, keys.TOKEN_RENEW_TIMESTAMP)
    await _done(operation, keys.OPERATION_RENEW_ACCESS_SECRETS)


async def renew_workload_identity_tokens(operation: SeedOperation) -> None:
    """Raises KubeError."""
    await _expire(operation, _OF_WORKLOAD_IDENTITIES, keys.WORKLOAD_IDENTITY_RENEW_TIMESTAMP)
    await _done(operation, keys.OPERATION_RENEW_WORKLOAD_IDENTITY_TOKENS)


async def renew_kubeconfig(operation: SeedOperation) -> None:
    """The certificate with which this process talks to the garden. Raises KubeError, TerminalError."""
    secret = operation.config.garden_client_connection.kubeconfig_secret
    if secret is None:
        asked = f"{keys.OPERATION}={keys.OPERATION_RENEW_KUBECONFIG}"
        raise TerminalError(
            f"the kubeconfig for the garden can't be renewed, since gardenClientConnection.kubeconfigSecret is not set "
            f"in the configuration of the gardenlet: remove the annotation {asked} from Seed {operation.name}"
        )
    own = Key(secret.namespace, secret.name)
    await operation.cluster.client.annotate(SECRETS, own, {keys.OPERATION: keys.OPERATION_RENEW})
    await _done(operation, keys.OPERATION_RENEW_KUBECONFIG)


async def _expire(operation: SeedOperation, label_selector: str, annotation: str) -> None:
    """Without the time of its next renewal, a token is renewed at once."""
    client = operation.cluster.client

    async def expire(secret: Object) -> None:
        name = key(secret)
        body = {"metadata": {"uid": uid(secret), "annotations": {annotation: None}}}
        await client.patch_if_exists(SECRETS, name, body)

    listed = await client.list(SECRETS, Selection(label_selector=label_selector), form=Form.METADATA)
    await for_each(expire, [each for each in listed if annotation in annotations(each)])


async def _done(operation: SeedOperation, asked: str) -> None:
    path = f"/metadata/annotations/{pointer_step(keys.OPERATION)}"
    patch = [{"op": "test", "path": path, "value": asked}, {"op": "remove", "path": path}]
    try:
        await operation.garden.client.patch(SEEDS, operation.name, patch, content_type=JSON_PATCH)
    except (NotFound, Invalid):
        return  # something else is asked for by now
