from gardener.api.garden import SHOOTS
from gardener.api.garden.bastion import BASTION as DEFINITION
from webhooks.garden.bastion import heartbeat, validation
from webhooks.garden.common import operations
from webhooks.garden.common.descriptor import Kind
from webhooks.garden.common.metadata import creator_stays, set_creator

BASTION = Kind(
    definition=DEFINITION,
    mutations=(validation.follow_shoot, set_creator),
    asks=operations.bastion,
    checks=(validation.key_errors, validation.ingress_errors),
    references=(validation.shoot_errors,),
    changes=(creator_stays,),
    status_mutations=(heartbeat.set_expiration,),
    status_checks=(heartbeat.errors,),
    reads=(SHOOTS,),
)
