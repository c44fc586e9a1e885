"""Alerts and dashboards ask for what there is, and are explained."""

import re
from itertools import combinations, pairwise
from typing import Any

import pytest
import yaml
from prometheus_client import REGISTRY

from kit.monitoring_files import (
    COMPUTED,
    MONITORED,
    PROJECT,
    REGISTERED,
    Monitored,
    Query,
    alert_queries,
    alerts,
    dashboard_queries,
    dashboard_texts,
    dashboards,
    queries,
    query,
)

METRICS = (PROJECT / "docs" / "metrics.md").read_text()
ALERTS_PAGE = (PROJECT / "docs" / "alerts.md").read_text()
CASES = {
    case["name"]: case
    for path in sorted((PROJECT / "tests" / "monitoring").glob("*.yaml"))
    for case in yaml.load(path.read_text(), yaml.CSafeLoader)["tests"]
}
ALERTS = {name: alert for each in MONITORED for name, alert in alerts(each).items()}
DASHBOARDS = {name: dashboard for each in MONITORED for name, dashboard in dashboards(each).items()}
QUERIES = [(each, requested) for each in MONITORED for requested in queries(each)]
of_all_queries = pytest.mark.parametrize(("of", "requested"), QUERIES, ids=lambda value: getattr(value, "where", ""))

SECTIONS = re.findall(r"^### (\w+)\n\n\*(\w+)", ALERTS_PAGE, re.MULTILINE)
"""Alerts that the page explains, with their severity."""

OF_TARGETS = {"job", "instance", "namespace", "pod"}
"""Labels that series get when they are scraped."""
OF_PROMETHEUS = {"ALERTS": {"alertname", "alertstate", "severity"}, "up": set[str]()}
OF_PROCESSES = ("build_info", "cache_behind", "config_hash", "memory_limit_bytes", "objects_unread", "reads_refused")
"""Metrics that are called after the program, and described once."""
HISTOGRAM = {"_bucket": {"le"}, "_sum": set[str](), "_count": set[str]()}


def described() -> dict[str, set[str]]:
    """Labels by metric, as docs/metrics.md has them; which metrics there are is the business of test_docs."""
    rows = re.findall(r"^\| `([a-z_]+)` \|([^|]*)\|([^|]*)\|$", METRICS, re.MULTILINE)
    found: dict[str, set[str]] = {}
    for name, labels, meaning in rows:
        own = set(re.findall(r"`(\w+)`", labels))
        if "(histogram)" in meaning:
            found |= {name + suffix: own | more for suffix, more in HISTOGRAM.items()}
        else:
            found[name] = own
    return found


def known() -> dict[str, set[str]]:
    of_process = {family.name: set[str]() for family in REGISTRY.collect() if family.name.startswith("process_")}
    labels_of = described()
    for prefix in ("controller_manager", "scheduler", "gardenlet"):
        labels_of |= {f"{prefix}_{name}": labels_of[f"resource_manager_{name}"] for name in OF_PROCESSES}
    return labels_of | of_process | {"process_cpu_seconds_total": set()} | OF_PROMETHEUS


KNOWN = known()


def test_what_queries_are_taken_apart_into() -> None:
    found = query("here", 'max by (a, b) (x{c="d, {",e=~"f"} or rate(y[5m])) > 1e3 and on (g) z offset 5m < Inf')
    assert [(series.metric, series.matchers) for series in found.reads] == [
        ("x", {"c": '="d, {"', "e": '=~"f"'}),
        ("y", {}),
        ("z", {}),
    ]
    assert found.groups_by == {"a", "b", "g"}


def test_labels_are_described_as_they_are() -> None:
    labels_of = described()
    for source in REGISTERED:
        assert source in REGISTRY._collector_to_names
    for family in (family for source in (*REGISTRY._collector_to_names, *COMPUTED) for family in source.collect()):
        names = [family.name, f"{family.name}_total", f"{family.name}_count"]
        name = next((name for name in names if name in labels_of), None)
        for sample in family.samples if name else ():
            if sample.name in labels_of:
                assert set(sample.labels) == labels_of[sample.name], sample.name


@of_all_queries
def test_a_query_reads_series_that_exist_by_labels_that_they_have(of: Monitored, requested: Query) -> None:
    assert requested.reads
    for series in requested.reads:
        assert series.metric in KNOWN
        assert series.matchers.keys() <= KNOWN[series.metric] | OF_TARGETS, series.text
    assert requested.groups_by <= OF_TARGETS.union(*(KNOWN[series.metric] for series in requested.reads))


@of_all_queries
def test_a_query_is_about_this_program_alone(of: Monitored, requested: Query) -> None:
    """Others have metrics of the same names."""
    for series in requested.reads:
        assert series.metric == "ALERTS" or series.matchers["job"] == f'="{of.job}"'


# --- alerts


def explained(name: str) -> str:
    """The alert whose section explains this one: its own, or the agent's of the same kind."""
    return (
        name if name in dict(SECTIONS) else re.sub("^(ControllerManager|Scheduler|Gardenlet)", "ResourceManager", name)
    )


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_reports_what_is_wrong_and_where_to_read_on(name: str) -> None:
    alert = ALERTS[name]
    notes = alert["annotations"]
    assert alert["labels"]["severity"] in {"critical", "warning", "info"}
    assert notes.keys() == {"summary", "description", "runbook_url"}
    assert notes["summary"].endswith(".")
    assert notes["runbook_url"] == f"https://example.com/docs/alerts.md#{explained(name).lower()}"


@pytest.mark.parametrize(
    "requested", [query for each in MONITORED for query in alert_queries(each)], ids=lambda requested: requested.where
)
def test_an_alert_shows_labels_that_it_has(requested: Query) -> None:
    shown = set(re.findall(r"\$labels\.(\w+)", ALERTS[requested.where]["annotations"]["description"]))
    assert shown <= (requested.groups_by or OF_TARGETS)


def test_every_alert_is_explained_with_its_severity_in_the_order_of_the_rules() -> None:
    documented = dict(SECTIONS)
    assert [name for name, _ in SECTIONS] == [name for name in ALERTS if explained(name) == name]
    for name, alert in ALERTS.items():
        assert documented[explained(name)] == alert["labels"]["severity"].capitalize()


@pytest.mark.parametrize("name", ALERTS)
def test_there_are_cases_in_which_an_alert_fires_and_in_which_it_does_not(name: str) -> None:
    """They are simulated by tests/monitoring."""
    tested = CASES[name]["promql_expr_test"]
    assert all(f'alertname="{name}"' in each["expr"] for each in tested)
    assert {bool(each.get("exp_samples")) for each in tested} == {True, False}


def test_cases_are_of_alerts_that_exist() -> None:
    assert CASES.keys() == ALERTS.keys()


# --- dashboards


def shown_panels(dashboard: dict[str, Any]) -> list[dict[str, Any]]:
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


@pytest.mark.parametrize("name", DASHBOARDS)
def test_panels_are_distinct_and_do_not_overlap(name: str) -> None:
    panels = DASHBOARDS[name]["panels"]
    ids = [panel["id"] for panel in panels]
    assert len(ids) == len(set(ids))
    for panel in panels:
        assert panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24
    for one, other in combinations((panel["gridPos"] for panel in panels), 2):
        apart_x = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        apart_y = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert apart_x or apart_y, (one, other)
    assert all(one["gridPos"]["y"] <= other["gridPos"]["y"] for one, other in pairwise(panels))


@pytest.mark.parametrize("name", DASHBOARDS)
def test_panels_have_titles_descriptions_and_units(name: str) -> None:
    for panel in shown_panels(DASHBOARDS[name]):
        assert panel["title"]
        assert panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        letters = [target["refId"] for target in panel["targets"]]
        assert letters == [*"ABC"[: len(letters)]]


@pytest.mark.parametrize("name", DASHBOARDS)
def test_the_data_source_is_the_one_that_is_chosen(name: str) -> None:
    dashboard = DASHBOARDS[name]
    variables = dashboard["templating"]["list"]
    assert variables[0]["name"] == "datasource"
    for asking in [*shown_panels(dashboard), *variables[1:], *dashboard["annotations"]["list"]]:
        assert asking["datasource"] == {"type": "prometheus", "uid": "${datasource}"}


def test_dashboards_are_distinct_and_are_of_a_form_that_grafana_still_reads() -> None:
    found = DASHBOARDS.values()
    assert len({each["uid"] for each in found}) == len({each["title"] for each in found}) == len(found) == 6
    assert all(each["schemaVersion"] >= 39 for each in found)


def test_variables_in_queries_are_declared_and_all_used() -> None:
    for name, dashboard in DASHBOARDS.items():
        declared = {variable["name"] for variable in dashboard["templating"]["list"]}
        texts = [text for each in MONITORED for where, text in dashboard_texts(each) if where.startswith(f"{name}:")]
        texts += [variable["query"]["query"] for variable in dashboard["templating"]["list"][1:]]
        used = set(re.findall(r"\$(\w+)", " ".join(texts))) - {"__rate_interval"}
        assert used | {"datasource"} == declared


@pytest.mark.parametrize("name", DASHBOARDS)
def test_choices_of_variables_come_from_series_that_exist(name: str) -> None:
    for variable in DASHBOARDS[name]["templating"]["list"][1:]:
        requested = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"])
        assert requested is not None
        series, label = requested.groups()
        (read,) = query(variable["name"], series).reads
        assert {label, *read.matchers} <= KNOWN[read.metric] | OF_TARGETS


def test_all_dashboards_are_explained() -> None:
    for dashboard in DASHBOARDS.values():
        assert f"\n- *{dashboard['title'].rpartition(' / ')[2]}*: " in (PROJECT / "docs" / "monitoring.md").read_text()


def test_nothing_that_is_shown_is_lost() -> None:
    """A query that was not found by the tests above would not be tested."""
    expected = sum(len(panel["targets"]) for each in DASHBOARDS.values() for panel in shown_panels(each))
    expected += sum(len(each["annotations"]["list"]) for each in DASHBOARDS.values())
    assert sum(len(dashboard_queries(each)) for each in MONITORED) == expected > 100
