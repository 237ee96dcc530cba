"""Audits of pages with axe: what people with disabilities need, in both themes."""

from __future__ import annotations

import json

import pytest

from .signed_in import SignedInPage

THEMES = ("light", pytest.param("dark", marks=pytest.mark.thorough))
_FINDINGS = (
    "axe.run(document, {resultTypes: ['violations']}).then(({violations}) => violations.map("
    "(one) => [one.id, one.nodes.map((node) => node.html)]))"
)


def audit(tab: SignedInPage, axe: str, address: str, theme: str) -> None:
    """Opens the page of an address and asserts that it is sound and that nothing harmed it."""
    page = tab.page
    page.run(f"(document.documentElement.dataset.theme = {json.dumps(theme)})")
    tab.go(address)
    page.run(f"(() => {{ if (!window.axe) {{ {axe} }} return true; }})()")
    page.wait("!document.querySelector('main').innerText.includes('Loading')")
    findings = page.run(_FINDINGS)
    assert not findings, findings
    assert page.run("document.title.endsWith(' · Warren') && !document.title.startsWith('Not')")
    harmed = "window.harmed ?? document.querySelectorAll('main :is(img, script)').length"
    assert page.run(harmed) == 0
    assert not page.errors, page.errors
