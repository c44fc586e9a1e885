from gardener import keys
from gardener.api.garden import CONTROLLER_REGISTRATIONS, SHOOTS
from gardener.api.garden.seed import SEED as DEFINITION
from webhooks.garden.common import operations
from webhooks.garden.common.descriptor import Kind
from webhooks.garden.common.metadata import allowed_operations, operation_not_overwritten
from webhooks.garden.seed import defaults, validation

CONSUMED = (keys.OPERATION_RECONCILE,)
KEPT = (
    keys.OPERATION_RENEW_ACCESS_SECRETS,
    keys.OPERATION_RENEW_KUBECONFIG,
    keys.OPERATION_RENEW_WORKLOAD_IDENTITY_TOKENS,
)

SEED = Kind(
    definition=DEFINITION,
    defaults=(defaults.reserve_capacity, defaults.label_extensions),
    asks=operations.on(consumed=CONSUMED, kept=KEPT),
    checks=(validation.spec_errors, allowed_operations(*CONSUMED, *KEPT)),
    references=(validation.extensions_registered,),
    changes=(validation.zones_in_use, operation_not_overwritten),
    deletions=(validation.in_use,),
    reads=(CONTROLLER_REGISTRATIONS, SHOOTS),
)
