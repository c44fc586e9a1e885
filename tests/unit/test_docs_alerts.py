"""What docs/alerts.md states of alerts is what their rules do."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kit.monitoring_files import MONITORED, rules_text

PROJECT = Path(__file__).parents[2]
DOCS = PROJECT / "docs"
PAGE = (DOCS / "alerts.md").read_text()
ALL = [
    (group["name"], rule)
    for each in MONITORED
    for group in yaml.safe_load(rules_text(each))["groups"]
    for rule in group["rules"]
]
RULES = [rule for _, rule in ALL if f"### {rule['alert']}\n" in PAGE]
"""Those that are explained by themselves."""


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
    "GardenletShootOperationLong": ("> 7200", "more than two hours"),
}
"""By alert: what its expression contains, and how the document states it."""


@pytest.mark.parametrize("alert", THRESHOLDS)
def test_the_threshold_of_an_alert_is_that_of_its_rule(alert: str) -> None:
    (rule,) = (rule for rule in RULES if rule["alert"] == alert)
    expression, text = THRESHOLDS[alert]
    assert expression in flat(rule["expr"])
    assert text in flat(section(alert))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_the_severity_of_an_alert_is_that_of_its_rule(rule: dict[str, Any]) -> None:
    assert section(rule["alert"]).startswith(f"\n*{rule['labels']['severity'].capitalize()}.*")


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.get("for")], ids=lambda rule: rule["alert"])
def test_an_alert_fires_after_the_documented_time(rule: dict[str, str]) -> None:
    times_in_text = re.findall(
        r"\bfor (\d+ minutes|half an hour|an hour)\b", flat(section(rule["alert"])), re.IGNORECASE
    )
    times = {"half an hour": "30m", "an hour": "1h"}
    assert {times.get(time) or time.replace(" minutes", "m") for time in times_in_text} <= {rule["for"]}


@pytest.mark.parametrize(("group", "rule"), ALL, ids=lambda value: value if isinstance(value, str) else value["alert"])
def test_the_runbook_of_an_alert_is_a_section_of_the_documentation(group: str, rule: dict[str, Any]) -> None:
    url = rule["annotations"]["runbook_url"]
    page, _, anchor = url.removeprefix("https://example.com/docs/").partition("#")
    headings = re.findall(r"^#+ (.+)$", (DOCS / page).read_text(), re.MULTILINE)
    assert anchor in {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


def section(alert: str) -> str:
    return PAGE.partition(f"### {alert}\n")[2].partition("\n#")[0]
