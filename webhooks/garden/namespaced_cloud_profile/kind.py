from gardener.api.garden import CLOUD_PROFILES, SHOOTS
from gardener.api.garden.namespaced_cloud_profile import NAMESPACED_CLOUD_PROFILE as DEFINITION
from webhooks.garden.common.descriptor import Kind
from webhooks.garden.namespaced_cloud_profile import defaults, validation

NAMESPACED_CLOUD_PROFILE = Kind(
    definition=DEFINITION,
    defaults=(defaults.drop_expired,),
    checks=(validation.spec_errors,),
    references=(validation.parent_errors,),
    changes=(validation.expired_dates, validation.overrides_in_use),
    rights=(validation.rights,),
    reads=(CLOUD_PROFILES, SHOOTS),
)
