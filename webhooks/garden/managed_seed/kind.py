from gardener import keys
from gardener.api.garden import CREDENTIALS_BINDINGS, GARDENLETS, MANAGED_SEEDS, SECRET_BINDINGS, SHOOTS
from gardener.api.garden.managed_seed import MANAGED_SEED as DEFINITION
from kube.resources import SECRETS
from webhooks.garden.common import operations
from webhooks.garden.common.descriptor import Kind
from webhooks.garden.common.metadata import allowed_operations, operation_not_overwritten
from webhooks.garden.common.namespaces import in_garden
from webhooks.garden.managed_seed import defaults, validation

CONSUMED, KEPT = (keys.OPERATION_RECONCILE,), (keys.OPERATION_RENEW_KUBECONFIG,)

MANAGED_SEED = Kind(
    definition=DEFINITION,
    defaults=(defaults.complete_gardenlet,),
    mutations=(defaults.fill_in_from_shoot,),
    asks=operations.on(consumed=CONSUMED, kept=KEPT),
    checks=(in_garden, validation.seed_errors, allowed_operations(*CONSUMED, *KEPT)),
    references=(validation.shoot_errors, validation.zone_errors, validation.no_gardenlet),
    changes=(validation.seed_changes, validation.zones_in_use, operation_not_overwritten),
    deletions=(validation.in_use,),
    warnings=(validation.credentials_of_parent,),
    reads=(SHOOTS, MANAGED_SEEDS, GARDENLETS, SECRET_BINDINGS, CREDENTIALS_BINDINGS, SECRETS),
)
