from gardener.api.garden import NAMESPACED_CLOUD_PROFILES, SHOOTS
from gardener.api.garden.cloud_profile import CLOUD_PROFILE as DEFINITION
from webhooks.garden.cloud_profile import defaults, validation
from webhooks.garden.common.descriptor import Kind

CLOUD_PROFILE = Kind(
    definition=DEFINITION,
    defaults=(defaults.drop_expired, defaults.label_provider),
    checks=(validation.spec_errors,),
    changes=(validation.versions_in_use,),
    reads=(NAMESPACED_CLOUD_PROFILES, SHOOTS),
)
