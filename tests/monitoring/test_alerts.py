"""Alerts fire when they should, by the judgement of `promtool`: each in a case of alerts.yaml, beside this file.

Skipped without the program; that every alert has its case is tested everywhere.
"""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from kit.monitoring_files import JOB, PROJECT, rules_text

pytestmark = pytest.mark.skipif(shutil.which("promtool") is None, reason="needs the program promtool")
CASES = Path(__file__).parent / "alerts.yaml"


def promtool(directory: Path, *arguments: str) -> None:
    done = subprocess.run(
        ["promtool", *arguments], cwd=directory, check=False, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "rules.yaml").write_text(rules_text())
    shutil.copy(CASES, tmp_path)
    return tmp_path


def test_prometheus_accepts_the_rules(directory: Path) -> None:
    promtool(directory, "check", "rules", "--lint=all", "--lint-fatal", "rules.yaml")


def test_each_alert_fires_when_it_should_and_only_then(directory: Path) -> None:
    promtool(directory, "test", "rules", "alerts.yaml")


def test_prometheus_accepts_the_configuration_in_the_documentation(tmp_path: Path) -> None:
    text = (PROJECT / "docs" / "monitoring.md").read_text()
    blocks = [yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)]
    (config,) = (block for block in blocks if "scrape_configs" in block)
    (job,) = config["scrape_configs"]
    assert job["job_name"] == JOB
    assert job.pop("kubernetes_sd_configs")  # which Debian's Prometheus is built without
    (tmp_path / "prometheus.yaml").write_text(yaml.safe_dump(config))
    promtool(tmp_path, "check", "config", "--syntax-only", "prometheus.yaml")
