from gardener.garden.kinds.controller_installation import CONTROLLER_INSTALLATION as DEFINITION
from webhooks.garden.common.metadata import frozen_in_deletion
from webhooks.garden.kind import Kind

CONTROLLER_INSTALLATION = Kind(definition=DEFINITION, changes=(frozen_in_deletion,))
