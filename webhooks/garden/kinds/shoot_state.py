"""ShootStates: data that a Shoot takes along to another Seed."""

from gardener.api.garden.shoot_state import SHOOT_STATE as DEFINITION
from webhooks.garden.common import deletion
from webhooks.garden.common.descriptor import Kind

SHOOT_STATE = Kind(definition=DEFINITION, deletions=(deletion.confirmed,))
