"""The look of pages, beside pictures of how they are meant to be.

Pages whose contents change show the answers in `looks/answers.json`, at the time of these.

The pictures are small, so that fonts and versions of the browser make no difference. After a wanted
change write them anew: `WARREN_RENEW_LOOKS=1 make test TESTS=tests/browser/ui/test_looks.py`, and
look at what git shows.
"""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

import pytest

from tests.browser.browsers import Browser, Page

from .signed_in import SignedInPage

pytestmark = pytest.mark.thorough

LOOKS = Path(__file__).with_name("looks")
RENEW = os.environ.get("WARREN_RENEW_LOOKS") == "1"
WIDE, PHONE = (1200, 900), (390, 840)
SMALL_WIDE, SMALL_PHONE = [200, 150], [130, 280]
MEAN_LIMIT = 0.012
"""Of the difference between white and black, over all pixels."""
CHANGED_LIMIT = 0.03
"""Share of the pixels that may differ by more than a quarter."""
SMALL = f"""async (text) => {{
  const octets = Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
  const picture = await createImageBitmap(new Blob([octets], {{type: 'image/png'}}));
  const canvas = document.createElement('canvas');
  const is_phone = picture.width < picture.height;
  [canvas.width, canvas.height] = is_phone ? {SMALL_PHONE} : {SMALL_WIDE};
  const context = canvas.getContext('2d');
  context.imageSmoothingQuality = 'high';
  context.drawImage(picture, 0, 0, canvas.width, canvas.height);
  return canvas;
}}"""
VARYING = "time, #live, .side .count"
HIDE = "one.style.visibility = 'hidden'"
PAGES = ("/design", "/welcome", "/definitions", "sign-in")
WITH_ANSWERS = {
    "overview": "/", "queue": "/queues/%2F/orders.failed", "subscription": "/subscriptions/1",
    "delivery": "/deliveries/1",
}  # fmt: skip
ANSWER = LOOKS / "answer.js"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("address", PAGES)
def test_pages_look_as_they_are_meant_to(
    ui: SignedInPage, chromium: Browser, tmp_path: Path, address: str, theme: str
) -> None:
    ui.page.resize(*WIDE)
    if address == "sign-in":
        ui.press("Sign out")
        ui.page.wait("document.querySelector('.sign-in')")
        ui.page.run("document.activeElement.blur()")
    else:
        ui.go(address)
    _compare(ui.page, chromium, tmp_path, f"{address.strip('/')}-{theme}", theme)


@pytest.mark.parametrize(
    ("size", "look", "theme"),
    [(WIDE, "light", "light"), (WIDE, "dark", "dark"), (PHONE, "phone", "light")],
)
@pytest.mark.parametrize("name", WITH_ANSWERS)
def test_pages_with_contents_too(
    ui: SignedInPage, chromium: Browser, tmp_path: Path,
    name: str, size: tuple[int, int], look: str, theme: str,
) -> None:  # fmt: skip
    ui.page.resize(*size)
    ui.page.run(f"({ANSWER.read_text()})({(LOOKS / 'answers.json').read_text()})")
    ui.go(WITH_ANSWERS[name])
    charts = {"overview": 3, "queue": 2}.get(name, 0)
    ui.page.wait(f"document.querySelectorAll('main .plot:has(text)').length === {charts}")
    if name == "subscription":
        ui.shows("Failed, retried", "main tbody")
    _compare(ui.page, chromium, tmp_path, f"{name}-{look}", theme)


def _compare(page: Page, chromium: Browser, tmp_path: Path, name: str, theme: str) -> None:
    page.run(f"(document.documentElement.dataset.theme = {json.dumps(theme)})")
    page.run(f"document.querySelectorAll({VARYING!r}).forEach((one) => {{ {HIDE} }})")
    page.run("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
    page.screenshot(tmp_path / "now.png")
    judge = chromium.new_page()
    now = _text(tmp_path / "now.png")
    meant = LOOKS / f"{name}.png"
    if RENEW:
        small = judge.run(f"({SMALL})({now}).then((one) => one.toDataURL().split(',')[1])")
        meant.write_bytes(base64.b64decode(small))
    mean, changed = _difference(judge, now, _text(meant))
    assert mean <= MEAN_LIMIT, f"{meant.name}: {mean:.3f} different"
    assert changed <= CHANGED_LIMIT, f"{meant.name}: {changed:.1%} of the picture changed"


def _text(file: Path) -> str:
    return json.dumps(base64.b64encode(file.read_bytes()).decode())


def _difference(judge: Page, now: str, meant: str) -> tuple[float, float]:
    """Returns the mean difference of two pictures, and the share of pixels that differ much."""
    pixels = "getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data"
    mean, changed = judge.run(f"""Promise.all([{now}, {meant}].map({SMALL})).then((pictures) => {{
      const [a, b] = pictures.map((canvas) => canvas.{pixels});
      const steps = Array.from(a, (value, at) => Math.abs(value - b[at]) / 255);
      const mean = steps.reduce((sum, one) => sum + one, 0) / (steps.length * 3 / 4);
      return [mean, steps.filter((one) => one > 0.25).length / (steps.length * 3 / 4)];
    }})""")
    return float(mean), float(changed)
