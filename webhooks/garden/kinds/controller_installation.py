"""ControllerInstallations: extensions in Seeds."""

from gardener.api.garden.controller_installation import CONTROLLER_INSTALLATION as DEFINITION
from webhooks.garden.common.descriptor import Kind
from webhooks.garden.common.metadata import frozen_in_deletion

CONTROLLER_INSTALLATION = Kind(definition=DEFINITION, changes=(frozen_in_deletion,))
