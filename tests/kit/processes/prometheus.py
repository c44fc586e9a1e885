"""A Prometheus as a process, for tests.

with Prometheus(tmp_path, {"agent": "127.0.0.1:8080"}) as prometheus:
assert prometheus.query("up")
"""

import json
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from kit.eventually import eventually
from localprocesses.ports import free_port


class Prometheus:
    """A Prometheus on loopback that scrapes every second, with the labels that its operator gives.

    Args:
        directory: for its files.
        targets: addresses by names of pods.
        rules: a rules file, as text.
    """

    def __init__(self, directory: Path, targets: Mapping[str, str], *, rules: str = "groups: []") -> None:
        self.port = free_port()
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None
        (directory / "rules.yaml").write_text(rules)
        pods = [{"targets": [target], "labels": {"namespace": "garden", "pod": pod}} for pod, target in targets.items()]
        job = {"job_name": "gardener-resource-manager", "honor_labels": True, "static_configs": pods}
        often = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
        config = {"global": often, "rule_files": ["rules.yaml"], "scrape_configs": [job]}
        (directory / "prometheus.yml").write_text(json.dumps(config))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        with (self._directory / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    "prometheus",
                    f"--config.file={self._directory / 'prometheus.yml'}",
                    f"--storage.tsdb.path={self._directory / 'data'}",
                    f"--web.listen-address=127.0.0.1:{self.port}",
                ],
                stdout=subprocess.DEVNULL,
                stderr=log,
            )
        try:
            self._wait_until_ready(self._process)
        except AssertionError:
            self.__exit__()
            raise
        return self

    def _wait_until_ready(self, process: "subprocess.Popen[bytes]") -> None:
        log = self._directory / "log"
        eventually(
            lambda: self._is_ready() or process.poll() is not None, "Prometheus to be ready", state=log.read_text
        )
        assert process.poll() is None, f"Prometheus has ended: {log.read_text()}"

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=10):
                return True
        except OSError:
            return False

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(timeout=20)

    def get(self, path: str, **parameters: str) -> dict[str, Any]:
        """`data` of an answer of the HTTP API. What Prometheus refuses fails with its reason."""
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                found: dict[str, Any] = json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            with error:
                raise AssertionError(f"{parameters}: {error.read().decode()}") from error
        return found

    def ask(self, expression: str) -> list[dict[str, Any]]:
        """The samples of an instant query."""
        samples: list[dict[str, Any]] = self.get("query", query=expression)["result"]
        return samples

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The samples of an instant query; queries until there are some, for 20 seconds at most."""
        deadline = time.monotonic() + 60
        while not (found := self.ask(expression)) and time.monotonic() < deadline:
            time.sleep(0.1)
        return found
