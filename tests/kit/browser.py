"""Pages of our programs in a real browser.

with launched() as browser, opening(browser, "http://localhost:8082") as open_page:
    page = open_page("/changes")
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

CHROMIUM = shutil.which("chromium") or ""
_ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-proxy-server",
)

expect.set_options(timeout=30_000)


@contextmanager
def launched() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(_ARGUMENTS))
        yield browser
        browser.close()


@contextmanager
def opening(browser: Browser, url: str) -> Iterator[Callable[..., Page]]:
    """Opens pages. At the end nothing was requested from anybody else, and the browser had nothing to complain about."""
    contexts: list[BrowserContext] = []
    requested: list[str] = []
    complaints: list[str] = []

    def open_page(path: str = "/", *, clock: bool = False, **options: object) -> Page:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})  # type: ignore[arg-type]
        context.set_default_timeout(30_000)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: requested.append(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        if clock:
            page.clock.install()
        page.goto(f"{url}{path}")
        return page

    yield open_page
    for context in contexts:
        assert context.cookies() == []
        context.close()
    assert [each for each in requested if not each.startswith(f"{url}/")] == []
    assert complaints == []
