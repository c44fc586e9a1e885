"""What docs/monitoring.md says of alerts is what their rules do."""

import re
from pathlib import Path

import pytest
import yaml

from kit.monitoring_files import rules_text

PROJECT = Path(__file__).parents[2]
DOCS = PROJECT / "docs"
RULES = yaml.safe_load(rules_text())["groups"]


def flat(text: str) -> str:
    return re.sub(r"\s+", " ", text)


THRESHOLDS = {
    "ResourceManagerRestartsOften": ("[30m]) > 2", "more than twice within half an hour"),
    "ResourceManagerMemoryNearLimit": ("> 0.85", "more than 85 %"),
    "ManagedResourcesMostlyNotApplied": ("> 0.5", "More than half of all"),
    "ManagedResourceOutdated": ("> 3 * 3600", "for three hours"),
    "ManagedResourceDriftStorm": (">= 10", "ten times or more"),
    "ManagedResourceIgnored": ("> 7 * 86400", "more than a week"),
    "ResourceManagerReconcileErrors": ("> 0.2", "More than a fifth"),
    "ResourceManagerQueueGrows": ("> 100", "More than 100 keys"),
    "ResourceManagerQueueSlow": ("> 10", "One of ten keys waits for more than 10 seconds"),
    "ResourceManagerWorkerStuck": ("> 600", "more than 10 minutes"),
    "ResourceManagerCertificateRequestsDenied": ("[30m]", "within half an hour"),
    "ResourceManagerThrottled": ("> 0.1", "more than one request in ten seconds"),
    "ResourceManagerOwnRateLimit": ("> 1", "One of ten requests waits for more than a second"),
    "ResourceManagerRequestErrors": ("> 0.05", "More than 5 %"),
    "ResourceManagerWebhookErrors": ("> 0.01", "More than 1 %"),
    "ResourceManagerWebhookRefusals": ("[15m]) ) > 20", "more than 20 requests in 15 minutes"),
    "ResourceManagerWebhookSlow": ("> 1", "One of a hundred requests takes more than a second"),
    "ResourceManagerCertificateNotRenewed": ("< 4 * 86400", "within four days"),
    "ResourceManagerCertificateExpiring": ("< 86400", "within a day"),
}
"""By alert: what its expression contains, and how the document says it."""


@pytest.mark.parametrize("alert", THRESHOLDS)
def test_the_threshold_of_an_alert_is_that_of_its_rule(alert: str) -> None:
    (rule,) = (rule for group in RULES for rule in group["rules"] if rule["alert"] == alert)
    expression, text = THRESHOLDS[alert]
    assert expression in flat(rule["expr"])
    section = (DOCS / "monitoring.md").read_text().partition(f"#### {alert}\n")[2].partition("\n#")[0]
    assert text in flat(section)


@pytest.mark.parametrize("group", RULES, ids=lambda group: group["name"])
def test_the_severity_of_an_alert_is_that_of_its_rule(group: dict[str, list[dict[str, dict[str, str]]]]) -> None:
    text = (DOCS / "monitoring.md").read_text()
    for rule in group["rules"]:
        assert f"#### {rule['alert']}\n\n*{rule['labels']['severity'].capitalize()}.*" in text


@pytest.mark.parametrize(
    "rule",
    [rule for group in RULES for rule in group["rules"] if rule.get("for")],
    ids=lambda rule: rule["alert"],
)
def test_an_alert_fires_after_the_documented_time(rule: dict[str, str]) -> None:
    section = (DOCS / "monitoring.md").read_text().partition(f"#### {rule['alert']}\n")[2].partition("\n#")[0]
    times_in_text = re.findall(r"\bfor (\d+ minutes|half an hour|an hour)\b", flat(section), re.IGNORECASE)
    times = {"half an hour": "30m", "an hour": "1h"}
    assert {times.get(time) or time.replace(" minutes", "m") for time in times_in_text} <= {rule["for"]}
