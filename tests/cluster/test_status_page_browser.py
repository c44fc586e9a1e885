"""The status page in a browser: searching, following links, refreshing, with a keyboard, without script.

UPDATE_DOCS=1 .venv/bin/pytest tests/cluster/test_status_page_browser.py     # also takes the pictures of the docs
"""

import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect

from devcluster.cluster import Cluster
from kit.browser import CHROMIUM, launched, opening
from kit.eventually import eventually
from kit.status_page import PageWorld, filled

IMAGES = Path(__file__).parents[2] / "docs" / "images"
WITH_PICTURES = os.environ.get("UPDATE_DOCS") == "1"

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="needs chromium")


@pytest.fixture(scope="module")
def world(cluster: Cluster) -> Iterator[PageWorld]:
    with filled(cluster, prefix="" if WITH_PICTURES else None) as world:
        yield world


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as browser:
        yield browser


@pytest.fixture
def opened(browser: Browser, world: PageWorld) -> Iterator[Callable[..., Page]]:
    with opening(browser, world.url) as open_page:
        yield open_page


def object_path(world: PageWorld) -> str:
    object_key = quote(f"apps/Deployment/{world.berlin}/gpu-operator", safe="")
    return f"/managedresources/{world.berlin}/gpu-operator/objects/{object_key}"


def rows(page: Page) -> list[str]:
    return [row.inner_text() for row in page.locator("tbody tr:visible").all()]


# --- searching


def test_typing_filters_the_rows_and_enter_queries_the_agent(world: PageWorld, opened: Callable[..., Page]) -> None:
    page = opened(f"/?q={world.prefix}" if world.prefix else "/")
    search = page.get_by_label("Search names, messages, Secrets and objects")
    search.fill("gpu")
    expect(page.get_by_role("status")).to_have_text("1 of the 10 rows of this page match. Enter searches all.")
    assert len(rows(page)) == 1
    search.fill("vpn-manifests")
    search.press("Enter")
    page.wait_for_url("**/?q=vpn-manifests**")
    assert len(rows(page)) == 1
    assert 'Secret "vpn-manifests" not found' in rows(page)[0]
    page.get_by_role("link", name="Reset").click()
    page.wait_for_url(f"{world.url}/")
    assert len(rows(page)) >= 10


def test_links_lead_from_a_state_to_a_managed_resource_and_its_objects(
    world: PageWorld, opened: Callable[..., Page]
) -> None:
    page = opened(f"/?namespace={world.berlin}")
    page.get_by_role("navigation", name="States").get_by_role("link", name="Unhealthy").click()
    page.wait_for_url("**state=failed**")
    page.get_by_role("link", name=f"{world.berlin}/gpu-operator").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(f"{world.berlin}/gpu-operator")
    assert "Deployment does not have minimum availability" in page.locator(".tree").inner_text()
    page.get_by_role("link", name=f"{world.berlin}/gpu-operator").click()
    expect(page.get_by_role("region", name="Pods")).to_contain_text("gpu-operator-")
    page.get_by_role("link", name=f"{world.berlin}/gpu-operator").click()
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Recent changes").click()
    page.get_by_label("Only drift that was repaired").check()
    page.get_by_role("button", name="Search").click()
    page.wait_for_url("**only=drift**")
    assert all("repaired" in row or "made again" in row for row in rows(page))


def test_everything_works_without_script(world: PageWorld, opened: Callable[..., Page]) -> None:
    page = opened("/", java_script_enabled=False)
    assert page.get_by_role("button", name="Refresh").count() == 0
    page.get_by_label("Search names, messages, Secrets and objects").fill("corefile")
    page.get_by_label("Namespace").select_option(world.paris)
    page.get_by_role("button", name="Search").click()
    assert [row.split("\t")[1] for row in rows(page)] == [f"{world.paris}/coredns"]
    page.get_by_role("link", name=f"{world.paris}/coredns").click()
    assert "corefile" in page.locator(".tree").inner_text()


# --- refreshing


def test_refreshing_is_switched_on_by_who_wants_it_and_keeps_what_is_typed_and_closed(
    world: PageWorld, opened: Callable[..., Page]
) -> None:
    path = f"/managedresources/{world.berlin}/metrics-server"
    page = opened(path, clock=True)
    toggle = page.get_by_role("button", name="Refresh every 10 s")
    expect(toggle).to_have_attribute("aria-pressed", "false")
    page.locator("summary").click()
    expect(page.locator("details")).not_to_have_attribute("open", "")
    with page.expect_response(f"{world.url}{path}"):
        toggle.click()
    expect(toggle).to_have_attribute("aria-pressed", "true")
    world.drift(world.berlin, "metrics", {"data": {"zone": "elsewhere"}})
    eventually(lambda: "data.zone" in world.page(path), state=lambda: world.page(path))
    with page.expect_response(f"{world.url}{path}"):
        page.clock.fast_forward(10_500)
    expect(page.get_by_text("repaired")).to_be_visible()
    expect(page.locator("details")).not_to_have_attribute("open", "")
    page.goto(f"{world.url}/")
    expect(toggle).to_have_attribute("aria-pressed", "true")
    page.get_by_label("Search names, messages, Secrets and objects").fill("gpu")
    with page.expect_response(f"{world.url}/"):
        page.clock.fast_forward(10_500)
    expect(page.locator("tbody tr:visible")).to_have_count(1)
    toggle.click()
    expect(toggle).to_have_attribute("aria-pressed", "false")


def test_ages_go_on(world: PageWorld, opened: Callable[..., Page]) -> None:
    page = opened(f"/managedresources/{world.berlin}/coredns", clock=True)
    age = page.locator("dl time").first
    before = age.inner_text()
    page.clock.fast_forward(5 * 3600_000)
    expect(age).not_to_have_text(before)
    assert age.inner_text().startswith("5h")


# --- for everybody

_CONTRASTS = """() => {
  const channel = (c) => { c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
  const numbers = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const behind = (node) => {
    for (; node; node = node.parentElement) {
      const color = numbers(getComputedStyle(node).backgroundColor);
      if (color.length < 4 || color[3] > 0) return color;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const node of document.querySelectorAll("body *")) {
    const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
    if (!own || !node.checkVisibility()) continue;
    const [a, b] = [light(numbers(getComputedStyle(node).color)), light(behind(node))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) found.push(`${node.tagName} "${node.textContent.trim().slice(0, 40)}" ${ratio.toFixed(2)}`);
  }
  return found;
}"""
_FLAWS = """() => {
  const flaws = [];
  const all = (selector) => [...document.querySelectorAll(selector)];
  for (const field of all("input:not([type=hidden]), select")) if (!field.labels.length) flaws.push(field.outerHTML);
  for (const image of all("img")) if (!image.hasAttribute("alt")) flaws.push(image.outerHTML);
  for (const head of all("th")) if (!head.scope) flaws.push(head.outerHTML);
  for (const table of all("table")) if (!table.caption) flaws.push("a table without a caption");
  for (const name of ["header", "nav", "main", "footer", "h1"]) if (!all(name).length) flaws.push(`no ${name}`);
  if (all("main").length > 1 || all("h1").length > 1) flaws.push("main or h1 twice");
  if (!document.documentElement.lang || !document.title) flaws.push("no language or title");
  const ids = all("[id]").map((node) => node.id);
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) flaws.push(`id ${id} twice`);
  for (const node of all("a, button")) if (!node.textContent.trim()) flaws.push(node.outerHTML);
  const levels = all("h1, h2, h3").map((node) => Number(node.tagName[1]));
  levels.forEach((level, at) => { if (at && level > levels[at - 1] + 1) flaws.push("a level of headings is left out"); });
  return flaws;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_and_structure_are_accessible(scheme: str, world: PageWorld, opened: Callable[..., Page]) -> None:
    for path in ("/", "/changes", f"/managedresources/{world.berlin}/gpu-operator", object_path(world)):
        page = opened(path, color_scheme=scheme)
        assert page.evaluate(_CONTRASTS) == []
        assert page.evaluate(_FLAWS) == []


def test_a_keyboard_is_enough_and_shows_where_it_is(opened: Callable[..., Page]) -> None:
    page = opened("/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    reached = set()
    for _ in range(12):
        reached.add(page.evaluate("document.activeElement.textContent.trim() || document.activeElement.id"))
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        page.keyboard.press("Tab")
    assert {"Skip to content", "Recent changes", "Refresh every 10 s", "q"} <= reached


def test_on_a_narrow_screen_rows_are_cards_with_the_message_first_and_filters_are_folded(
    world: PageWorld, opened: Callable[..., Page]
) -> None:
    narrow = {"width": 360, "height": 700}
    for path in ("/", "/changes", f"/managedresources/{world.paris}/monitoring", object_path(world)):
        page = opened(path, viewport=narrow)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
    page = opened(f"/?q={world.prefix}+vpn-manifests", viewport=narrow)
    top = {name: page.locator(f"tbody {name}").bounding_box() for name in ("th", "td.words", "td[data-label=Applied]")}
    heights = [box["y"] for box in top.values() if box]
    assert heights == sorted(heights)
    assert len(set(heights)) == 3
    expect(page.get_by_label("Namespace")).to_be_hidden()
    page.get_by_text("Filters").click()
    expect(page.get_by_label("Namespace")).to_be_visible()
    expect(opened("/").get_by_label("Namespace")).to_be_visible()


def test_nothing_moves_for_who_does_not_want_that(opened: Callable[..., Page]) -> None:
    page = opened("/", reduced_motion="reduce")
    durations = page.evaluate("getComputedStyle(document.querySelector('button')).transitionDuration")
    assert set(durations.split(", ")) == {"0s"}


# --- pictures


@pytest.mark.skipif(not WITH_PICTURES, reason="UPDATE_DOCS=1 takes pictures")
def test_pictures_are_taken(world: PageWorld, opened: Callable[..., Page]) -> None:
    from PIL import Image

    def taken(path: str, scheme: str, width: int, *, whole: bool = True) -> Image.Image:
        page = opened(path, color_scheme=scheme, viewport={"width": width, "height": 860})
        return Image.open(io.BytesIO(page.screenshot(full_page=whole))).convert("RGB")

    def save(name: str, picture: Image.Image) -> None:
        file = IMAGES / f"status-page-{name}.png"
        picture.quantize(128).save(file, optimize=True)
        assert file.stat().st_size < 200_000

    one = f"/managedresources/{world.berlin}/gpu-operator"
    save("list", taken("/", "light", 1280))
    save("managed-resource", taken(one, "light", 1280))
    save("changes", taken("/changes", "dark", 1280))
    narrow = [taken("/", "light", 400, whole=False), taken(one, "dark", 400, whole=False)]
    together = Image.new("RGB", (sum(each.width for each in narrow) + 16, narrow[0].height), "white")
    together.paste(narrow[0], (0, 0))
    together.paste(narrow[1], (narrow[0].width + 16, 0))
    save("narrow", together)
