"""WorkloadIdentities: credentials that are issued as tokens."""

from collections.abc import Iterator

from gardener.api.garden.workload_identity import WORKLOAD_IDENTITY as DEFINITION
from kube.validation import invalid
from webhooks.garden.common.descriptor import Kind
from webhooks.garden.common.findings import Finding
from webhooks.garden.common.write import Write

_LONGEST_SUBJECT = 255
_UID_LENGTH = 36


def subject_fits(write: Write) -> Iterator[Finding]:
    """The subject of tokens is made of the names, and OpenID Connect limits its length."""
    length = len(f"gardener.cloud:workloadidentity:{write.namespace}:{write.name}:") + _UID_LENGTH
    if length > _LONGEST_SUBJECT:
        detail = (
            f"the subject of tokens, which ends with namespace, name and uid, would have {length} characters; "
            "shorten the name"
        )
        yield invalid("metadata.name", write.name, f"{detail}; limit is {_LONGEST_SUBJECT}")


WORKLOAD_IDENTITY = Kind(definition=DEFINITION, checks=(subject_fits,))
