"""A real browser without a window: Debian's Chromium, driven by Playwright, kept off the network."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = (
    "--no-sandbox",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--disable-features=OptimizationHints,MediaRouter",
)


@dataclass
class Visit:
    """A page with all that it said on the console and all that it asked for."""

    page: Page
    messages: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    @property
    def fetched(self) -> list[str]:
        """Requests beyond the file itself and what stands in it."""
        return [url for url in self.requests[1:] if not url.startswith(("data:", "blob:"))]


@contextmanager
def browser() -> Iterator[Browser]:
    """Start Chromium, and end it."""
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(FLAGS))
        try:
            yield running
        finally:
            running.close()


@contextmanager
def visit(
    running: Browser, path: Path, width: int, height: int = 900, scheme: str = "light"
) -> Iterator[Visit]:
    """Open a file at this size and wait until its list of facts stands."""
    # no smooth scrolling: a click must not land on what has moved since it was aimed
    context = running.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if scheme == "dark" else "light",
        reduced_motion="reduce",
    )
    page = context.new_page()
    seen = Visit(page)
    page.on("console", lambda message: seen.messages.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: seen.messages.append(f"error: {error}"))
    page.on("request", lambda request: seen.requests.append(request.url))
    page.goto(path.resolve().as_uri())
    page.wait_for_selector("body[data-ready=yes]", timeout=60_000)
    try:
        yield seen
    finally:
        context.close()
