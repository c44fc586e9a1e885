"""What is loaded when a program starts: time to ready, and memory that is never given back."""

import os
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from agent.programs import PROGRAMS as OF_THE_AGENT
from agent.resource_manager.controllers import CONTROLLERS
from config.resource_manager import decode
from image.programs import PROGRAMS, enables_a_webhook
from localprocesses.pki import Authority
from webhooks.program import PROGRAMS as OF_THE_WEBHOOKS

HEAD = {"apiVersion": "resourcemanager.config.gardener.cloud/v1alpha1", "kind": "ResourceManagerConfiguration"}
OPTIONAL = (
    *("garbageCollector", "istioClusterConfiguration", "kubeletCSRApprover", "networkPolicy"),
    *("nodeAgentReconciliationDelay", "nodeCriticalComponents", "tokenInvalidator", "tokenRequestor"),
)


def output_of(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
        cwd=Path(__file__).parents[2],
        env={"PATH": os.environ["PATH"], **environment},
    )
    return done.stdout.strip()


@pytest.mark.parametrize("program", ["agent.resource_manager.app", "webhooks.app"])
def test_the_authorities_of_the_machine_are_not_read(program: str, tmp_path: Path) -> None:
    authorities = tmp_path / "authorities.pem"
    authorities.write_bytes(Authority.create("machine").bundle)
    code = f"""
import os, ssl, process.composition, {program}
from aiohttp import connector
contexts = (ssl.create_default_context(), connector._SSL_CONTEXT_VERIFIED, connector._SSL_CONTEXT_UNVERIFIED)
print(*(context.cert_store_stats()["x509"] for context in contexts), os.environ.get("SSL_CERT_DIR"))
"""
    assert output_of(code, SSL_CERT_FILE=str(authorities)) == "1 0 0 None"


def test_controllers_that_are_not_wanted_are_not_loaded() -> None:
    code = """
import sys
from agent.programs import PROGRAMS
from agent.resource_manager.controllers import CONTROLLERS
from config.resource_manager.schema import ResourceManagerConfiguration
PROGRAMS[0].compose()
assert not CONTROLLERS.load(ResourceManagerConfiguration())
print(*(name for name in sys.modules if name in {"cryptography", "msgspec", "agent.resource_manager.status_page.server"}
        or name.startswith("agent.") and name.endswith(".controller")))
"""
    assert sorted(output_of(code).split()) == [
        "agent.resource_manager.health.controller",
        "agent.resource_manager.managed_resource.controller",
    ]


def test_templates_are_loaded_when_a_page_of_flows_is_requested() -> None:
    code = """
import sys, agent.gardenlet.app
print(*(name for name in sys.modules if name in {"jinja2", "agent.gardenlet.flow.page.handler"}))
"""
    assert output_of(code) == ""


def test_a_gardenlet_loads_what_every_seed_needs() -> None:
    """Not what collects spans, what is there for typing errors, or large components that a seed may do without."""
    code = """
import sys, agent.gardenlet.app
from agent.gardenlet.controllers import CONTROLLERS
from config.gardenlet.schema import GardenletConfiguration
from agent.programs import PROGRAMS
CONTROLLERS.load(GardenletConfiguration())
print(*sys.modules)
"""
    loaded = set(output_of(code).split())
    assert "components.system" in loaded
    assert loaded.isdisjoint({"difflib", "importlib.metadata", "opentelemetry", "zipfile"})
    assert "gardener.api.garden.shoot" not in loaded
    left_out = ("istiod", "ingress_gateway")
    assert loaded.isdisjoint(f"components.{name}" for name in left_out)


@pytest.mark.parametrize("block", OPTIONAL)
def test_a_controller_that_is_wanted_is_loaded(block: str) -> None:
    config = decode(orjson.dumps({**HEAD, "controllers": {block: {"enabled": True}}})).config
    (declare,) = CONTROLLERS.load(config)
    assert callable(declare)


def test_the_webhook_for_high_availability_brings_its_controller() -> None:
    config = decode(orjson.dumps({**HEAD, "webhooks": {"highAvailabilityConfig": {"enabled": True}}})).config
    assert [declare.__module__ for declare in CONTROLLERS.load(config)] == [
        "agent.resource_manager.node.high_availability_config"
    ]


def test_the_webhooks_of_a_garden_are_loaded_by_no_other_program() -> None:
    code = """
import sys
from config.resource_manager.schema import ResourceManagerConfiguration
from image.programs import PROGRAMS
from webhooks.routes import routes
PROGRAMS[0].compose()
routes(ResourceManagerConfiguration(), None)
print(*(name for name in sys.modules if name.startswith(("webhooks.garden", "config.webhooks.", "agent.scheduler"))))
"""
    assert output_of(code) == ""


def test_the_resource_manager_of_the_image_loads_webhooks_only_if_one_is_enabled() -> None:
    assert not enables_a_webhook(decode(orjson.dumps(HEAD)).config)
    assert enables_a_webhook(decode(orjson.dumps({**HEAD, "webhooks": {"seccompProfile": {"enabled": True}}})).config)
    assert (
        "webhooks.app"
        not in output_of(
            "import sys; from image.programs import PROGRAMS; PROGRAMS[0].compose(); print(*sys.modules)"
        ).split()
    )


def test_the_image_is_every_program_once() -> None:
    kinds = [program.component.kind for program in PROGRAMS]
    every = {program.component.kind for program in (*OF_THE_AGENT, *OF_THE_WEBHOOKS)}
    assert sorted(kinds) == sorted(every)
    assert PROGRAMS[0].elects
