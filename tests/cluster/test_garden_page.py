"""`kubectl gardener page` in a garden: its content, rights of its reader, and access to it.

UPDATE_DOCS=1 .venv/bin/pytest tests/cluster/test_garden_page.py     # also takes the pictures of the docs
"""

import contextlib
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from gardener.api.garden import SEEDS, SHOOTS
from kit.browser import CHROMIUM, launched, opening
from kit.garden import Garden
from kit.garden_shoots import ShootPlace

pytestmark = pytest.mark.timeout(600)

IMAGES = Path(__file__).parents[2] / "docs" / "images"
WITH_PICTURES = os.environ.get("UPDATE_DOCS") == "1"
HOSTILE = "<script>alert(1)</script>\x1b[2J"
SUCCEEDED = {"type": "Reconcile", "state": "Succeeded", "progress": 100, "description": "done"}
BROKEN = {**SUCCEEDED, "state": "Error", "description": f"Waiting for etcd {HOSTILE}"}
TIME = {"lastUpdateTime": "2026-01-01T00:00:00Z"}


@contextlib.contextmanager
def serving(kubeconfig: Path, *flags: str) -> Iterator[str]:
    """Address of the page."""
    command = (sys.executable, "-m", "kubectl.garden", "page", f"--kubeconfig={kubeconfig}", *flags)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:"), process.communicate(timeout=10)
        yield url
    finally:
        process.terminate()
        process.communicate(timeout=20)


def page(url: str, *, method: str = "GET", headers: dict[str, str] | None = None) -> tuple[int, str]:
    try:
        request = urllib.request.Request(url, method=method, headers=headers or {})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def with_shoots(garden: Garden) -> ShootPlace:
    place = ShootPlace(garden)
    seed = place.seed()
    conditions = [
        {
            "type": "GardenletReady",
            "status": "Unknown",
            "reason": "R",
            "message": "silent",
            **TIME,
            "lastTransitionTime": TIME["lastUpdateTime"],
        }
    ]
    place.patch(SEEDS, seed, {"status": {"conditions": conditions}}, status=True)
    for name, operation in (("fine", SUCCEEDED), ("broken", BROKEN)):
        made = place.shoot(name, seedName=seed)
        status: Any = {"lastOperation": {**operation, **TIME}, "observedGeneration": made["metadata"]["generation"]}
        place.patch(SHOOTS, name, {"status": {**status, "seedName": seed}}, status=True)
    return place


def test_problems_come_first_and_lead_to_findings(garden: Garden) -> None:
    place = with_shoots(garden)
    with serving(garden.cluster.kubeconfig) as url:
        status, listed = page(f"{url}?q={place.name}")
        assert status == 200
        assert listed.index(f"shoots/-/{place.namespace}/broken") < listed.index(f"seeds/-/-/{place.name}")
        assert listed.index(f"seeds/-/-/{place.name}") < listed.index(f"shoots/-/{place.namespace}/fine")
        assert "<script>alert" not in listed
        assert "\x1b" not in listed
        assert "&lt;script&gt;alert(1)" in listed
        status, broken = page(f"{url}shoots/-/{place.namespace}/broken")
        assert status == 200
        assert "Reconcile failed" in broken
        assert f"--seed-kubeconfig {place.name}=FILE" in broken
        assert page(f"{url}seeds/-/-/{place.name}")[0] == 200
        assert page(f"{url}shoots/-/{place.namespace}/none")[0] == 404
        assert page(f"{url}secrets/-/{place.namespace}/{place.name}")[0] == 404


def test_only_the_reader_has_access_and_only_to_what_he_may_read(garden: Garden) -> None:
    place = with_shoots(garden)
    kubeconfig = garden.cluster.kubeconfig_for(f"reader-{place.name}", ["system:authenticated"])
    with serving(kubeconfig, f"--namespace={place.namespace}") as url:
        root, token = url.rstrip("/").rsplit("/", 1)
        assert page(url, headers={"Host": "evil.example.com"})[0] == 421
        assert page(url, method="POST")[0] == 405
        for wrong in ("/", f"/{token[:-1]}/", f"/x{token}/", "/%2e%2e/"):
            status, text = page(f"{root}{wrong}")
            assert status in {403, 404}
            assert "Overview" not in text
        status, listed = page(f"{url}?q={place.name}")
        assert status == 200
        assert f"seeds/-/-/{place.name}" in listed  # which all users may read
        assert f"{place.namespace}/" not in listed
        assert f"Shoots of the namespace {place.namespace} alone are read" in listed
        assert "you may not list Shoots of 1 namespace" in listed
        assert page(f"{url}shoots/-/{place.namespace}/fine")[0] == 502
        garden.allow(f"reader-{place.name}", "list", SHOOTS)
    with serving(kubeconfig) as url:
        assert f"shoots/-/{place.namespace}/fine" in page(f"{url}?q={place.namespace}")[1]


@pytest.mark.skipif(not CHROMIUM, reason="needs chromium")
def test_the_page_in_a_browser(garden: Garden) -> None:
    place = with_shoots(garden)
    with (
        serving(garden.cluster.kubeconfig) as url,
        launched() as browser,
        opening(browser, url.rstrip("/")) as open_page,
    ):
        shown = open_page(f"/?q={place.name}")
        expect(shown.get_by_role("row")).to_have_count(4)
        shown.get_by_role("link", name=f"{place.namespace}/broken").click()
        expect(shown.get_by_role("heading", level=1)).to_have_text(f"Shoot {place.namespace}/broken")
        expect(shown.locator("table")).to_contain_text("Reconcile failed")
        shown.get_by_role("link", name="Overview").click()
        expect(shown.get_by_role("heading", level=1)).to_have_text("Overview")
        narrow = open_page(f"/?q={place.name}", viewport={"width": 420, "height": 800}, color_scheme="dark")
        assert narrow.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
