"""Prometheus takes the rules of a seed's servers, computes what they are to compute, and fires its alerts.

Skipped without `promtool`.
"""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from components import prometheus
from gardener.api.kinds import PROMETHEUS_RULES
from kube.objects import Object
from kube.yaml import Dumper

pytestmark = pytest.mark.skipif(shutil.which("promtool") is None, reason="needs the program promtool")


def groups() -> Iterator[Object]:
    """Groups of the rules of all servers, with names of their own."""
    for server in prometheus.SERVERS:
        for each in prometheus.own(server, prometheus.Values(image="i", seed="meadow")):
            if each["kind"] == PROMETHEUS_RULES.kind:
                (group,) = each["spec"]["groups"]
                yield {**group, "name": f"{server}-{group['name']}"}


def promtool(directory: Path, *arguments: str) -> None:
    done = subprocess.run(
        ["promtool", *arguments], cwd=directory, check=False, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_rules_of_a_seed_report_what_is_used_and_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(yaml.dump({"groups": [*groups()]}, Dumper=Dumper, width=1000))
    shutil.copy(Path(__file__).parent / "seed" / "cases.yaml", tmp_path)
    promtool(tmp_path, "check", "rules", "--lint=all", "--lint-fatal", "rules.yaml")
    promtool(tmp_path, "test", "rules", "cases.yaml")
