"""Where answers to recorded requests to the garden API differ from the original's, and why."""

_NO_INVALID_LABEL = "the original also writes a label that cannot be one, and reports it"
_NO_PATH = "the original reports a path that is none, []"
_ENTRY = "the API server names the entry of a list that is there twice, not the field that is its key"
_NO_FIELD = "the original refuses with 400 or 500 and names no field"

OTHER_FIELDS = {
    "api-backup/bucket-no-provider": _NO_INVALID_LABEL,
    "api-cloudprofile/no-type": _NO_INVALID_LABEL,
    "api-credentialsbinding/two-types": _NO_INVALID_LABEL,
    "api-secretbinding/empty-provider": _NO_INVALID_LABEL,
    "api-bastion/bad-cidr": "the original names the whole list, here it is the address",
    "api-bastion/shoot-changed": (
        "a rule of CEL, which also sees removal, names the object around the immutable field; the original adds a "
        "second owner, too"
    ),
    "api-controllerdeployment/nothing": _NO_PATH,
    "api-controllerdeployment/v1beta1-no-type": _NO_PATH,
    "api-cloudprofile/bad-version": "the schema names the field below the entry",
    "api-cloudprofile/double-machine-type": _ENTRY,
    "api-cloudprofile/double-region": _ENTRY,
    "api-cloudprofile/double-version": _ENTRY,
    "api-project/dual-approval-twice": _ENTRY,
    "api-managedseed/config-kind": _NO_FIELD,
    "api-managedseedset/negative": "the API server reports the path of the subresource scale, too",
    "api-managedseedset/selector-changed": "rules of CEL come before those of webhooks, which are not queried then",
    "api-namespacedcloudprofile/newest-expires": _NO_FIELD,
    "api-namespacedcloudprofile/no-expiration": _NO_FIELD,
    "api-namespacedcloudprofile/same-machine-type": _NO_FIELD,
    "api-namespacedcloudprofile/same-volume-type": _NO_FIELD,
    "api-namespacedcloudprofile/unknown-image": _NO_FIELD,
    "api-shoot/double-worker": _ENTRY,
}
"""Refused, for other fields."""

BETTER = {
    "api-managedseed/empty-seed-spec": "the kind of an ingress controller has a default; newer releases add fields here",
    "api-shoot/image-prefix": "a partial version is completed as in newer releases, which add fields here",
    "api-shoot/image-unclassified-and-classified": (
        "a version without classification is taken for supported; in the release that is followed it loses against any"
        " that has one, and newer releases add fields here"
    ),
}
"""What is accepted here, and the release that is followed refuses or stores otherwise."""
