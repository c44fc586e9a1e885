"""The page of flows in a browser."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from devcluster.pytest_plugin import RunClusters
from kit.browser import CHROMIUM, launched, opening
from kit.garden import Garden
from kit.gardenlet_flows import DEFINITIONS, MANAGER, FlowWorld, waiting_seed

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
