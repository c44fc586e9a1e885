"""Alerts and dashboards as they are installed, and the queries in them.

    for query in queries(CONTROLLER_MANAGER):
        for series in query.reads:
            assert series.metric in known

Queries are taken apart only so far that it shows which series they read; that they are right is for Prometheus to report.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from agent.controller_manager.metrics import GardenCollector
from agent.gardenlet.common import metrics as gardenlet_metrics
from agent.gardenlet.flow import metrics as flow_metrics
from agent.resource_manager.common.managed_resource_metrics import ManagedResourceCollector
from agent.resource_manager.csr_approver.reconcile import csr_approver_decisions_total
from agent.resource_manager.garbage_collector import objects_total
from agent.scheduler.shoot import metrics as scheduler_metrics
from agent.shared.token_requestor.metrics import TokenCollector
from config.resource_manager import COMPONENT
from kube.runtime import metrics as kube_metrics
from process.caches import CacheCollector, RefusalCollector
from webhooks import metrics as webhook_metrics

REGISTERED = (
    csr_approver_decisions_total,
    objects_total,
    gardenlet_metrics.gardenlet_cluster_reachable,
    flow_metrics.gardenlet_flow_duration_seconds,
    scheduler_metrics.pending_shoots,
    kube_metrics.leader_election_master_status,
    kube_metrics.workqueue_depth,
    webhook_metrics.request_metrics,
)
"""Where metrics come from that are counted in all programs; named so that they are all there."""

TOKENS = TokenCollector(COMPONENT.metrics_prefix)
TOKENS.follow(tuple)
OF_GARDENLETS = gardenlet_metrics.Collectors()
OF_GARDENLETS.tokens.follow(tuple)
OF_GARDENLETS.shoots.follow(tuple)
COMPUTED = (
    GardenCollector(tuple),
    ManagedResourceCollector(),
    TOKENS,
    *OF_GARDENLETS.all(),
    CacheCollector({}, prefix=COMPONENT.metrics_prefix),
    RefusalCollector({}, prefix=COMPONENT.metrics_prefix),
)
"""Those that a program makes, and computes when they are scraped."""

PROJECT = Path(__file__).resolve().parents[2]
COMPONENTS = PROJECT / "manifests" / "components"


@dataclass(frozen=True, slots=True)
class Monitored:
    """A component whose processes are a job of their own.

    Args:
        components: where those of its manifests are that monitoring takes.
        further: where its other alerts are.
    """

    job: str
    components: Path
    further: tuple[Path, ...] = ()

    @property
    def rule_files(self) -> list[Path]:
        return [folder / "alerts" / "prometheus-rule.yaml" for folder in (self.components, *self.further)]

    @property
    def dashboard_files(self) -> list[Path]:
        return sorted((self.components / "dashboards").glob("*.json"))


RESOURCE_MANAGER = Monitored("gardener-resource-manager", COMPONENTS, (COMPONENTS / "webhooks",))
CONTROLLER_MANAGER = Monitored("gardener-controller-manager", COMPONENTS / "controller-manager")
SCHEDULER = Monitored("gardener-scheduler", COMPONENTS / "scheduler")
GARDENLET = Monitored("gardenlet", COMPONENTS / "gardenlet")
MONITORED = (RESOURCE_MANAGER, CONTROLLER_MANAGER, SCHEDULER, GARDENLET)


@cache
def rules_text(of: Monitored = RESOURCE_MANAGER) -> str:
    """The alerts as a plain rules file."""
    files = [yaml.load(file.read_text(), yaml.CSafeLoader)["spec"]["groups"] for file in of.rule_files]
    return yaml.safe_dump({"groups": [group for groups in files for group in groups]}, sort_keys=False)


@cache
def alerts(of: Monitored = RESOURCE_MANAGER) -> dict[str, dict[str, Any]]:
    """By name."""
    groups = yaml.load(rules_text(of), yaml.CSafeLoader)["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


@cache
def dashboards(of: Monitored = RESOURCE_MANAGER) -> dict[str, dict[str, Any]]:
    """By name of the file, without its suffix."""
    return {path.stem: json.loads(path.read_text()) for path in of.dashboard_files}


# --- queries


@dataclass(frozen=True, slots=True)
class Series:
    """What a selector reads."""

    metric: str
    matchers: dict[str, str]
    """By label, with the operator: `="x"`."""
    text: str


@dataclass(frozen=True, slots=True)
class Query:
    where: str
    text: str
    """With values in place of variables."""
    reads: tuple[Series, ...] = field(repr=False)
    groups_by: frozenset[str] = field(repr=False)
    """Labels in `by`, `on` and the like."""


def queries(of: Monitored = RESOURCE_MANAGER) -> list[Query]:
    """All of alerts and dashboards."""
    return [*alert_queries(of), *dashboard_queries(of)]


def alert_queries(of: Monitored = RESOURCE_MANAGER) -> list[Query]:
    return [query(name, alert["expr"]) for name, alert in alerts(of).items()]


def dashboard_queries(of: Monitored = RESOURCE_MANAGER, *, variables: dict[str, str] | None = None) -> list[Query]:
    """Args: variables: what is not given is as with one instance and nothing chosen."""
    values = {"job": of.job, "namespace": ".*", "name": ".*", "__rate_interval": "1m", **(variables or {})}
    return [query(where, expand(text, values)) for where, text in dashboard_texts(of)]


def dashboard_texts(of: Monitored = RESOURCE_MANAGER) -> Iterator[tuple[str, str]]:
    """Where queries of dashboards are, and their text."""
    for name, dashboard in dashboards(of).items():
        for panel in dashboard["panels"]:
            for target in panel.get("targets", ()):
                yield f"{name}: {panel['title']} ({target['refId']})", target["expr"]
        for annotation in dashboard["annotations"]["list"]:
            yield f"{name}: annotation {annotation['name']}", annotation["expr"]


def expand(text: str, values: dict[str, str]) -> str:
    return re.sub(r"\$(\w+)", lambda found: values[found[1]], text)


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\[[^\]]*\]|[A-Za-z_:][\w:]*|[\d.]+\w*|=~|!~|!=|==|>=|<=|\S')
_GROUPING = {"by", "without", "on", "ignoring", "group_left", "group_right"}
_WORDS = {"and", "or", "unless", "bool", "offset", "Inf", *_GROUPING}
_NAME = re.compile(r"[A-Za-z_:][\w:]*")


def query(where: str, text: str) -> Query:
    tokens = _TOKEN.findall(text)
    reads, groups_by = [], set()
    position = 0
    while position < len(tokens):
        token = tokens[position]
        position += 1
        following = tokens[position] if position < len(tokens) else ""
        if token in _GROUPING and following == "(":
            end = tokens.index(")", position)
            groups_by |= set(tokens[position + 1 : end]) - {","}
            position = end + 1
        elif _NAME.fullmatch(token) and token not in _WORDS and following not in {"(", "by", "without"}:
            matchers: list[str] = []
            if following == "{":
                end = tokens.index("}", position)
                matchers = tokens[position + 1 : end]
                position = end + 1
            reads.append(_series(token, matchers))
    return Query(where, text, tuple(reads), frozenset(groups_by))


def _series(metric: str, tokens: list[str]) -> Series:
    matchers = {tokens[i]: tokens[i + 1] + tokens[i + 2] for i in range(0, len(tokens), 4)}
    text = ",".join(label + value for label, value in matchers.items())
    return Series(metric, matchers, f"{metric}{{{text}}}" if text else metric)
