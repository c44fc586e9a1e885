"""The page of flows in a browser."""

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp.test_utils import make_mocked_request
from playwright.sync_api import Browser, Page, Route, expect

from agent.gardenlet.flow.graph import Graph, Task
from agent.gardenlet.flow.page.handler import answer
from agent.gardenlet.flow.record import FlowRecords, Subject
from devcluster.testing.pytest_plugin import RunClusters
from gardener import error_codes
from gardener.flow_reports import State
from kit.browser import CHROMIUM, launched, opening
from kit.garden import Garden
from kit.gardenlet_flows import DEFINITIONS, MANAGER, FlowWorld, waiting_seed
from kube.objects import Key

pytestmark = [pytest.mark.timeout(900), pytest.mark.skipif(not CHROMIUM, reason="needs chromium")]


@pytest.fixture(scope="module")
def world(garden: Garden, devcluster_run: RunClusters) -> Iterator[FlowWorld]:
    with waiting_seed(garden) as world:
        yield world


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as browser:
        yield browser


@pytest.fixture
def opened(browser: Browser, world: FlowWorld) -> Iterator[Callable[..., Page]]:
    with opening(browser, world.url) as open_page:
        yield open_page


def _row(page: Page, task: str) -> Any:
    return page.locator("section").first.locator("tr", has=page.locator("th", has_text=task))


def test_the_page_shows_a_running_flow_as_bars_with_what_is_waited_for(
    world: FlowWorld, opened: Callable[..., Page]
) -> None:
    page = opened("/flows")
    page.get_by_role("link", name=f"Seed {world.place.name}").click()
    expect(page.get_by_role("heading", name="Running flow: Seed reconciliation")).to_be_visible()
    expect(_row(page, MANAGER)).to_contain_text(world.waits())
    bar = _row(page, DEFINITIONS).locator("svg.bar rect").first
    expect(bar).to_have_class("good")
    box = bar.bounding_box()
    assert box is not None
    assert box["width"] >= 1
    assert box["height"] > 5
    # The style is applied: bars have the colour of their state.
    assert page.evaluate("getComputedStyle(document.querySelector('.bar .good')).fill") != "rgb(0, 0, 0)"
    expect(_row(page, "Deploying system resources")).to_contain_text(f"waits for {MANAGER}")
    expect(page.get_by_role("button", name="Refresh every 10 s")).to_be_visible()


def test_on_a_narrow_screen_nothing_is_cut_off(world: FlowWorld, opened: Callable[..., Page]) -> None:
    for path in ("/flows", world.path):
        page = opened(path, viewport={"width": 360, "height": 700})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path


def test_an_error_is_shown_as_a_whole_with_what_to_do(browser: Browser) -> None:
    graph = Graph("Shoot reconciliation", [Task("infra", "Waiting until infrastructure is ready", _act)])
    records = FlowRecords()
    recording = records.begin(Subject("Shoot", Key("garden-dev", "web")), graph, ())
    recording.start("infra")
    error = "the account may not do this: " + "a long explanation, " * 40
    recording.end("infra", error=error, codes=[error_codes.INFRA_UNAUTHORIZED, error_codes.INFRA_QUOTA_EXCEEDED])
    recording.close(State.FAILED)

    def serve(route: Route) -> None:
        path = urlsplit(route.request.url).path
        request = make_mocked_request("GET", path, headers={"Host": "localhost"})
        found = answer(request, records, on_loopback=True)
        assert isinstance(found.body, bytes)
        route.fulfill(status=found.status, body=found.body, content_type=found.content_type)

    context = browser.new_context(viewport={"width": 1180, "height": 800})
    context.route("**/*", serve)
    page = context.new_page()
    page.goto("http://localhost/flows/shoot/garden-dev/web")
    row = _row(page, "Waiting until infrastructure is ready")
    expect(row).to_contain_text(error.strip())
    expect(row.locator(".remedy")).to_contain_text("give the account of the provider the rights")
    cut = "[...document.querySelectorAll('td.words, td.words *')].filter(each => each.scrollHeight > each.clientHeight + 1)"
    assert page.evaluate(f"{cut}.filter(each => getComputedStyle(each).overflow === 'hidden').length") == 0
    context.close()


async def _act(_: None) -> None:
    pass
