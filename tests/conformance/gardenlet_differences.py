"""Where a gardenlet leaves something else than the original, and why."""

from conformance.scenario_data import Observations

_RENEWED = "it goes on with the new certificate, and is not restarted"

GOES_ON: dict[str, str] = {
    "bootstrap/renew-by-annotation": _RENEWED,
    "bootstrap/renew-keeps-subject-and-sans": _RENEWED,
    "bootstrap/renewed-by-deadline": _RENEWED,
}
"""By the scenario, why the process runs where the original's has ended; all else is as recorded."""

_AUTHORITY = {"certificate-authority-data": "<CA of the garden>"}

BETTER: dict[str, tuple[str, Observations]] = {
    "bootstrap/cluster-ca-none": (
        "a kubeconfig that works is not replaced because of a configured authority that does not",
        {
            "rewritten": {
                "gardenlet": "running",
                "seed:v1 Secret garden/$P-kubeconfig": {
                    "data": {"kubeconfig": {"kubeconfig": {"cluster": {"c": _AUTHORITY}}}}
                },
            }
        },
    ),
    "seed-lease/seed-deleted": (
        "that there is no Seed is no fault of the gardenlet",
        {"gone": {"GET /healthz": {"code": 200}, "gardenlet": "running"}},
    ),
}
"""By the scenario: the reason, and the part of the observations that is right."""

EITHER: dict[str, tuple[str, Observations]] = {
    "token-requestor/purpose-removed": (
        "a Secret that is not to have a token any more gets none, also if it has been requested already",
        {"left-alone": {"v1 ServiceAccount seed-conf/sa-$P": "absent"}},
    ),
}
"""By the scenario: the reason, and the part of the observations that is right besides what was recorded."""
