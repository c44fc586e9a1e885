from gardener.api.garden import CONTROLLER_DEPLOYMENTS, CONTROLLER_REGISTRATIONS
from gardener.api.garden.controller_registration import CONTROLLER_REGISTRATION as DEFINITION
from webhooks.garden.common.descriptor import Kind
from webhooks.garden.common.metadata import frozen_in_deletion
from webhooks.garden.controller_registration import validation

CONTROLLER_REGISTRATION = Kind(
    definition=DEFINITION,
    defaults=(validation.set_defaults,),
    checks=(validation.resource_errors, validation.selector_errors),
    references=(validation.taken, validation.deployments_exist),
    changes=(frozen_in_deletion,),
    reads=(CONTROLLER_REGISTRATIONS, CONTROLLER_DEPLOYMENTS),
)
