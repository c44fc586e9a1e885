"""Alerts fire when they should, by the judgement of `promtool`: each in a case of a file beside this one.

Skipped without the program; that every alert has its case is tested everywhere.
"""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from kit.monitoring_files import (
    CONTROLLER_MANAGER,
    GARDENLET,
    MONITORED,
    PROJECT,
    RESOURCE_MANAGER,
    SCHEDULER,
    Monitored,
    rules_text,
)

pytestmark = pytest.mark.skipif(shutil.which("promtool") is None, reason="needs the program promtool")
CASES = {
    RESOURCE_MANAGER: "alerts.yaml",
    CONTROLLER_MANAGER: "controller_manager_alerts.yaml",
    SCHEDULER: "scheduler_alerts.yaml",
    GARDENLET: "gardenlet_alerts.yaml",
}
of_each = pytest.mark.parametrize("of", MONITORED, ids=lambda of: of.job)


def promtool(directory: Path, *arguments: str) -> None:
    done = subprocess.run(
        ["promtool", *arguments], cwd=directory, check=False, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stdout + done.stderr


@of_each
def test_prometheus_accepts_the_rules(of: Monitored, tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(rules_text(of))
    promtool(tmp_path, "check", "rules", "--lint=all", "--lint-fatal", "rules.yaml")


@of_each
def test_each_alert_fires_when_it_should_and_only_then(of: Monitored, tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(rules_text(of))
    shutil.copy(Path(__file__).parent / CASES[of], tmp_path)
    promtool(tmp_path, "test", "rules", CASES[of])


def test_prometheus_accepts_the_configuration_in_the_documentation(tmp_path: Path) -> None:
    text = (PROJECT / "docs" / "monitoring.md").read_text()
    blocks = [yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)]
    (config,) = (block for block in blocks if "scrape_configs" in block)
    (job,) = config["scrape_configs"]
    assert job["job_name"] == RESOURCE_MANAGER.job
    assert job.pop("kubernetes_sd_configs")  # which Debian's Prometheus is built without
    (tmp_path / "prometheus.yaml").write_text(yaml.safe_dump(config))
    promtool(tmp_path, "check", "config", "--syntax-only", "prometheus.yaml")
