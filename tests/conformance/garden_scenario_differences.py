"""Where the controllers of a garden leave something else than the original's do, and why.

Each reason holds for whatever object is like that of the scenario.
"""

from conformance.scenario_data import Observations

_PROJECT, _NAMESPACE = "core.gardener.cloud/v1beta1 Project $P", "v1 Namespace $NS"
_OF_NAMESPACES = "namespace.gardener.cloud/"
_SHOOT = "core.gardener.cloud/v1beta1 Shoot"
_ROLE = "rbac.authorization.k8s.io/v1 ClusterRole gardener.cloud:extension:project:$P"

_NO_COMMA = "the original leaves a blank and a comma where one part of a text is empty"

_QUOTES = "an Event names the Seed in single quotes, as in the older release; all else is as in the newest one"

OTHER_WORDS: dict[str, str] = {
    "scheduler/map-names-with-blanks": _QUOTES,
    "scheduler/pending-until-ready": _QUOTES,
    "scheduler/pending-until-seed-made": _QUOTES,
    "scheduler/pending-until-shoot-gone": _QUOTES,
    "scheduler/pending-until-untainted": _QUOTES,
    "scheduler/pending-until-visible": _QUOTES,
    "scheduler/shoot-selector-empty": _QUOTES,
    "shoot-maintenance/operation-rotate-credentials-start": _NO_COMMA,
    "shoot-maintenance/operation-rotate-etcd-encryption-key-start": _NO_COMMA,
    "shoot-maintenance/operation-rotate-ssh-keypair": _NO_COMMA,
}
"""By the scenario: only texts for people differ."""

_CORDON = {
    "seedmanagement.gardener.cloud/cordoned": "true",
    "seedmanagement.gardener.cloud/cordoned-by": "<uid>",
}
_CORDONED: tuple[str, Observations] = (
    "no Shoot comes onto a Seed that is about to be removed",
    {"then": {"core.gardener.cloud/v1beta1 Seed $P-0": {"metadata": {"annotations": _CORDON}}}},
)

_NOT_APPROVED: tuple[str, Observations] = (
    "a certificate names one Seed, by a DNS label; without a name it would give rights to all of them",
    {"then": {"certificates.k8s.io/v1 CertificateSigningRequest $P": {"metadata": {"name": "$P"}, "status": None}}},
)

BETTER: dict[str, tuple[str, Observations]] = {
    "csr/any-name-after": _NOT_APPROVED,
    "csr/bare-prefix": _NOT_APPROVED,
    "managedseedset/deleted-full": (
        "a Shoot stays while the Seed that runs in it is there, also when its ManagedSeed is gone",
        {"then": {f"{_SHOOT} garden/$P-0": {"metadata": {"deletionTimestamp": None, "name": "$P-0"}}}},
    ),
    "managedseedset/scale-in-chooses-unready": (
        "what is wrong with a Seed does not count for its Shoot any more when the ManagedSeed is gone",
        {"then": {f"{_SHOOT} garden/$P-1": {"metadata": {"labels": {"shoot.gardener.cloud/status": "healthy"}}}}},
    ),
    "managedseedset/scale-in-chooses-lowest-ordinal": _CORDONED,
    "managedseedset/scale-in-ready": _CORDONED,
    "project-stale/no-namespace-yet": (
        "the Namespace of a Project is not deleted before the Project: admission refuses that",
        {"error": {}},
    ),
    "project/deleted-unlabelled": (
        "a Namespace that does not show its owner any more stays; the original leaves its owner, so that it is deleted",
        {
            "then": {
                _PROJECT: "absent",
                _NAMESPACE: {"metadata": {"name": "$NS", "deletionTimestamp": None, "ownerReferences": None}},
            }
        },
    ),
    "project/existing-labelled": (
        "a Namespace that is to stay is not owned by the Project, so that no garbage collector deletes it",
        {
            "made": {
                _PROJECT: {"status": {"phase": "Ready"}},
                _NAMESPACE: {
                    "metadata": {
                        "name": "$NS",
                        "annotations": {f"{_OF_NAMESPACES}keep-after-project-deletion": "true"},
                        "ownerReferences": None,
                    }
                },
            }
        },
    ),
    "project/extension-role": (
        "the role of members of whom there are none any more is removed",
        {"then": {f"{_ROLE}:foo": "absent", f"{_ROLE}:bar": "absent"}},
    ),
    "seed-lifecycle/shoot-status-seed-only": (
        "the Seed that a Shoot leaves is the one that reports for it, as in the newest release",
        {"then": {f"{_SHOOT} s": {"status": {"conditions": [{"type": "APIServerAvailable", "status": "Unknown"}]}}}},
    ),
}
"""By the scenario: the reason, and the part of the observations that is right."""

EITHER: dict[str, tuple[str, Observations]] = {
    "shoot-conditions/not-managed": (
        "a foreign condition that is written right after the creation goes if it is seen with it",
        {"then": {f"{_SHOOT} s": {"status": {"conditions": [{"type": "APIServerAvailable"}]}}}},
    ),
}
"""By the scenario: the reason, and the part of the observations that is right besides what was recorded."""
