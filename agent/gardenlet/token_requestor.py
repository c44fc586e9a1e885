"""The controller `token-requestor`: tokens for the garden, of ServiceAccounts, in Secrets of the seed.

The Secrets are those of the class `garden`; the resource managers of Shoots see to others. The ServiceAccounts are all
in the namespace of the Seed, whatever a Secret says: a gardenlet has no others. Tokens that the garden does not accept
any more are renewed with the annotation `gardener.cloud/operation: renew-garden-access-secrets` of the Seed.
"""

from agent.gardenlet.context import Context
from agent.shared.token_requestor import controller
from config.shared import TokenRequestor
from gardener import keys
from gardener.garden.seeds import namespace_of
from kube.runtime.loop import ControlLoop


def declare(context: Context) -> ControlLoop:
    settings = TokenRequestor(
        enabled=True,
        concurrent_syncs=context.config.controllers.token_requestor.concurrent_syncs,
        class_=keys.CLASS_GARDEN,
        audiences=(),
    )
    return controller.declare(
        settings,
        source=context.seed,
        target=context.garden,
        recorder=context.seed_recorder,
        metrics=context.metrics.tokens,
        service_account_namespace=namespace_of(context.seed_name),
        lenient=True,
    )
