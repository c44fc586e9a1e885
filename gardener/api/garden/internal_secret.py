"""InternalSecret: a Secret that members of the project cannot read."""

from gardener.api.definition import AGE, Column, Definition
from gardener.api.garden import INTERNAL_SECRETS
from gardener.api.schema import FORBIDDEN, base64, boolean, immutable, mapping, rule, string, string_map

INTERNAL_SECRET = Definition(
    resource=INTERNAL_SECRETS,
    description="A Secret of Gardener's own in the namespace of a project: no role of members grants access to it."
    " The API server must be configured to encrypt this resource in etcd.",
    fields={
        "immutable": boolean("Whether data can no longer be changed. True cannot be taken back."),
        "data": mapping("Values by key, base64.", base64("A value, base64.")),
        "stringData": string_map("Values by key as plain text, for writing only: the webhooks put them into data."),
        "type": string("Type of the Secret. Immutable.", at_most=253),
    },
    rules=[
        immutable("type"),
        rule(
            "!has(oldSelf.immutable) || !oldSelf.immutable"
            " || (has(self.data) == has(oldSelf.data) && (!has(self.data) || self.data == oldSelf.data))",
            "field is immutable when `immutable` is set",
            field="data",
            reason=FORBIDDEN,
        ),
        rule(
            "!has(oldSelf.immutable) || !oldSelf.immutable || (has(self.immutable) && self.immutable)",
            "field is immutable when `immutable` is set",
            field="immutable",
            reason=FORBIDDEN,
        ),
    ],
    selectable=("type",),
    columns=(Column("Type", ".type"), AGE),
)
