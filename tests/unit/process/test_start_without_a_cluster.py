"""What each program reports when its API server can't be reached: one error that reports what to do."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from kit.eventually import eventually
from kube.errors import Conflict, Forbidden, NotFound, Unauthorized, Unreachable, remedy
from localprocesses.ports import free_port

KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
    "users": [{"name": "u", "user": {"token": "none"}}],
    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    "current-context": "x",
}
RESOURCE_MANAGER = {
    "apiVersion": "resourcemanager.config.gardener.cloud/v1alpha1",
    "kind": "ResourceManagerConfiguration",
    "leaderElection": {"resourceNamespace": "garden"},
    "webhooks": {"projectedTokenMount": {"enabled": True}},
    "server": {"webhooks": {"tls": {"serverCertDir": "/nonexistent"}}},
}
CONTROLLER_MANAGER = {
    "apiVersion": "controllermanager.config.gardener.cloud/v1alpha1",
    "kind": "ControllerManagerConfiguration",
}
SCHEDULER = {
    "apiVersion": "scheduler.config.gardener.cloud/v1alpha1",
    "kind": "SchedulerConfiguration",
}


@pytest.mark.parametrize(
    ("program", "config"),
    [
        ("agent", RESOURCE_MANAGER),
        ("agent", CONTROLLER_MANAGER),
        ("agent", SCHEDULER),
        ("webhooks", RESOURCE_MANAGER),
        ("image", RESOURCE_MANAGER),
        ("image", CONTROLLER_MANAGER),
        ("image", SCHEDULER),
    ],
)
def test_an_api_server_that_is_not_there_is_an_error_with_a_remedy(
    program: str, config: dict[str, Any], tmp_path: Path
) -> None:
    names = ("healthProbes", "metrics", "webhooks") if "webhooks" in config else ("healthProbes", "metrics")
    servers = {name: {**config.get("server", {}).get(name, {}), "port": free_port()} for name in names}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({**config, "server": servers}))
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(KUBECONFIG))
    command = [sys.executable, "-m", program, f"--config={tmp_path / 'config.yaml'}"]
    environment = {**os.environ, "KUBECONFIG": str(tmp_path / "kubeconfig")}
    with (tmp_path / "log").open("w") as output:
        process = subprocess.Popen(command, stderr=output, env=environment)
    try:

        def found() -> dict[str, Any]:
            lines = (tmp_path / "log").read_text().splitlines()
            errors = [json.loads(line) for line in lines if '"level":"error"' in line]
            return next(each for each in errors if "Connection refused" in each.get("error", ""))

        entry = eventually(found, "the error", seconds=60, passing=(StopIteration, ValueError))
    finally:
        process.kill()
        process.wait()
    assert entry["remedy"].startswith("check whether the API server runs")
    log = (tmp_path / "log").read_text()
    assert not [word for word in ("SSLContext", "stacktrace", "Traceback") if word in log]


@pytest.mark.parametrize(
    ("error", "begin"),
    [
        (Forbidden(403, message="no"), "grant this user the rights to update leases, as the roles"),
        (Unauthorized(401, message="no"), "check whether the kubeconfig or the token belongs to this cluster"),
        (Unreachable("no"), "check whether the API server runs"),
        (TimeoutError(), "check whether the API server runs"),
        (NotFound(404, message="no"), "create the namespace garden"),
        (Conflict(409, message="no"), ""),
    ],
)
def test_remedies(error: Exception, begin: str) -> None:
    found = remedy(error, "update leases", namespace="garden")
    assert found.startswith(begin)
    assert bool(found) == bool(begin)
