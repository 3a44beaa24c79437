"""A real browser for the pages that vdla writes."""

from __future__ import annotations

import os
import shutil

import pytest


@pytest.fixture(scope="module")
def browser():
    """Chromium; the test is skipped where there is none. Its event loop ends with the module, since
    Dask wants one of its own."""
    from playwright.sync_api import sync_playwright

    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("expected chromium, found none; install with: apt-get install chromium")
    with sync_playwright() as playwright:
        root = ["--no-sandbox"] if os.geteuid() == 0 else []
        running = playwright.chromium.launch(executable_path=found, args=root)
        yield running
        running.close()


@pytest.fixture
def open_page(browser):
    """Opens a report as a user would, by its file; nothing may go wrong or be asked of a server."""
    troubles, contexts = [], []

    def open_file(path, drawn="#placement-table tr", **options):
        context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}, **options})
        contexts.append(context)
        context.set_offline(True)
        page = context.new_page()
        requests: list[str] = []
        page.on("console", lambda said: said.type == "error" and troubles.append(said.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri())
        page.wait_for_selector(drawn)
        assert requests == [path.as_uri()]
        return page

    yield open_file
    for context in contexts:
        context.close()
    assert troubles == []
