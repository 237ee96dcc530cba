"""`serve` of warren.js in a browser: many tunnels, both transports."""

from __future__ import annotations

import httpx
import pytest

from .browsers import Page

COUNT = 20
SERVE = """
(async () => {
  const { serve } = await import('/js/warren.js');
  const handler = async (request) => new Response(await request.arrayBuffer(), {
    status: 203,
    headers: { 'x-path': new URL(request.url).pathname, 'x-cookie': request.headers.get('cookie') },
  });
  const all = Array.from({ length: %d }, () => serve({ transport: '%s' }, handler));
  globalThis.tunnels = await Promise.all(all);
  return globalThis.tunnels.map((tunnel) => tunnel.url);
})()
"""
OCTETS = bytes(range(256)) * 100


def ask(url: str) -> httpx.Response:
    """Browsers find names below `localhost` by themselves; others may not."""
    where = httpx.URL(url)
    headers = {"Host": where.netloc.decode(), "Cookie": "theme=dark"}
    return httpx.post(
        where.copy_with(host="127.0.0.1", path="/a%20b"),
        content=OCTETS,
        headers=headers,
        verify=False,  # certificates would be loaded for each
    )


@pytest.mark.parametrize(
    ("count", "transport"),
    [pytest.param(COUNT, "auto", marks=pytest.mark.thorough), (3, "auto"), (3, "poll")],
)
def test_tunnels_of_one_page(page: Page, hub_url: str, count: int, transport: str) -> None:
    page.open(f"{hub_url}demos/driver.html")
    urls = page.run(SERVE % (count, transport))
    assert len(set(urls)) == count
    for url in urls:
        answer = ask(url)
        assert answer.status_code == 203
        assert answer.content == OCTETS
        assert (answer.headers["x-path"], answer.headers["x-cookie"]) == ("/a%20b", "theme=dark")
    page.run("Promise.all(globalThis.tunnels.map((tunnel) => tunnel.close()))")
    assert ask(urls[0]).status_code == 410
