"""The constraints of a Shoot: possible obstacles to its next operation."""

from collections.abc import Iterable
from datetime import timedelta

from agent.gardenlet.shoot.care.rules.observed import ApiServer, Observed, WebhookFinding
from agent.gardenlet.shoot.care.rules.old_authority import is_checked, unused
from gardener.conditions import (
    CA_CERTIFICATE_VALIDITIES_ACCEPTABLE,
    CRDS_WITH_PROBLEMATIC_CONVERSION_WEBHOOKS,
    HIBERNATION_POSSIBLE,
    MAINTENANCE_PRECONDITIONS_SATISFIED,
    not_checked,
)
from gardener.error_codes import PROBLEMATIC_WEBHOOK
from kube.clock import format_duration, format_time
from kube.conditions import Condition

_OF_WEBHOOKS = (HIBERNATION_POSSIBLE, MAINTENANCE_PRECONDITIONS_SATISFIED)
_LEAST = timedelta(days=365)
_NOT_RUNNING = "Shoot control plane is not running at the moment."
NOT_CHECKED = "ConstraintNotChecked"


def constraints(observed: Observed) -> list[Condition]:
    """All constraints that can be checked, including those that are only shown if they report a problem."""
    authorities, inside = _authorities(observed), observed.inside
    if observed.probe.api_server is ApiServer.NOT_RUNNING:
        return [authorities, *(Condition(each, "False", NOT_CHECKED, _NOT_RUNNING) for each in _OF_WEBHOOKS)]
    if observed.probe.api_server is ApiServer.UNREACHABLE or inside is None or inside.problem:
        problem = observed.probe.message or (inside.problem if inside else "objects have not been listed yet")
        unknown = f"Could not initialize Shoot client for constraints check: {problem}"
        return [authorities, *(not_checked(each, unknown) for each in _OF_WEBHOOKS)]
    users = inside.users_of_old
    return [
        authorities,
        _converted(inside.converted),
        *([] if users is None or not is_checked(observed.shoot) else [unused(users, shoot=observed.shoot)]),
        *(_webhooks(each, inside.webhooks) for each in _OF_WEBHOOKS),
    ]


def _webhooks(of_type: str, found: Iterable[WebhookFinding]) -> Condition:
    for each in found:
        what = f'{each.kind} "{each.name}" is problematic'
        if each.problem:
            note = f"; {each.note}" if each.note else ""
            return Condition(
                of_type, "False", "ProblematicWebhooks", f"{what}: {each.problem}{note}", (PROBLEMATIC_WEBHOOK,)
            )
        if each.is_remediated:
            message = f"{what} and was remediated by Gardener (please check its annotations for details)."
            return Condition(of_type, "False", "RemediatedWebhooks", message, (PROBLEMATIC_WEBHOOK,))
    return Condition(of_type, "True", "NoProblematicWebhooks", "All webhooks are properly configured.")


def _authorities(observed: Observed) -> Condition:
    of_type, known = CA_CERTIFICATE_VALIDITIES_ACCEPTABLE, observed.authorities
    if unreadable := sorted(name for name, until in known.items() if until is None):
        return not_checked(of_type, f"the label valid-until-time of Secret {unreadable[0]} can't be read")
    expiring = [(name, until) for name, until in sorted(known.items()) if until and until - observed.now < _LEAST]
    if not expiring:
        message = f"All CA certificates are still valid for at least {format_duration(_LEAST.total_seconds())}."
        return Condition(of_type, "True", "NoExpiringCACertificates", message)
    named = ", ".join(f'"{name}" (expiring at {format_time(until)})' for name, until in expiring)
    head = f"Some CA certificates are expiring in less than {format_duration(_LEAST.total_seconds())}"
    return Condition(of_type, "False", "ExpiringCACertificates", f"{head}, you should rotate them: {named}")


def _converted(names: Iterable[str]) -> Condition:
    of_type = CRDS_WITH_PROBLEMATIC_CONVERSION_WEBHOOKS
    if having := sorted(names):
        message = f"Some CRDs have multiple stored versions and a conversion webhook configured: {', '.join(having)}"
        return Condition(of_type, "False", of_type, message)
    message = "No CRDs have multiple stored versions present and a conversion webhook configured"
    return Condition(of_type, "True", "NoCRDsWithProblematicConversionWebhooks", message)
