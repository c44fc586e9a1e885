from gardener import keys
from gardener.api.garden import MANAGED_SEEDS, PROJECTS, SHOOTS
from gardener.api.garden.managed_seed_set import MANAGED_SEED_SET as DEFINITION
from webhooks.garden.common import deletion, operations
from webhooks.garden.common.descriptor import Kind
from webhooks.garden.common.namespaces import in_garden
from webhooks.garden.managed_seed_set import scaling, shoots, validation

MANAGED_SEED_SET = Kind(
    definition=DEFINITION,
    defaults=(validation.set_ingress_kind,),
    asks=operations.on(consumed=(keys.OPERATION_RECONCILE,)),
    checks=(
        in_garden,
        validation.selector_errors,
        validation.metadata_errors,
        validation.update_errors,
        validation.seed_errors,
        shoots.shoot_errors,
    ),
    changes=(validation.seed_changes, shoots.shoot_changes),
    references=(validation.name_errors,),
    deletions=(deletion.in_order("its replicas"),),
    warnings=(scaling.replicas_that_stay, validation.numbers_that_fit),
    reads=(MANAGED_SEEDS, PROJECTS, SHOOTS),
)
