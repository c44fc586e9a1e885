from gardener.api.garden.internal_secret import INTERNAL_SECRET as DEFINITION
from webhooks.garden.common.descriptor import Kind
from webhooks.garden.internal_secret import validation

INTERNAL_SECRET = Kind(
    definition=DEFINITION,
    defaults=(validation.merge_texts, validation.keep_type),
    checks=(validation.key_errors, validation.type_errors),
)
