"""Each demo in a real browser does what it says."""

from __future__ import annotations

import httpx
import pika
import pytest

from tests.support.server import WarrenServer

from .browsers import Browser, Page
from .demo_pages import open_demo, post, sign_in

MARKUP = "<img src=x onerror=console.error('ran')>"


def test_message_log(page: Page, warren: WarrenServer, hub_url: str) -> None:
    open_demo(page, hub_url, "rabbitlog")
    page.wait("!document.querySelector('#ways').hidden")
    page.click("#send button")
    page.shows("Hello, rabbits", "#log")
    post(warren, "x/rabbitlog", "greetings.fr", "Bonjour, lapins")
    page.shows("Bonjour, lapins", "#log")
    with pika.BlockingConnection(pika.URLParameters(warren.amqp_url)) as connection:
        connection.channel().basic_publish("rabbitlog", "greetings.de", b"Hallo, Kaninchen")
    page.shows("greetings.de", "#log")
    page.shows("Hallo, Kaninchen", "#log")


@pytest.mark.thorough
def test_the_message_log_is_a_web_server(page: Page, warren: WarrenServer, hub_url: str) -> None:
    open_demo(page, hub_url, "rabbitlog")
    page.wait("document.querySelector('#address a')")
    url = httpx.URL(page.run("document.querySelector('#address a').href"))
    answer = httpx.get(url.copy_with(host="127.0.0.1"), headers={"Host": url.netloc.decode()})
    assert answer.text.startswith("I am a web page, and have logged ")


@pytest.mark.thorough
def test_what_others_publish_is_text(page: Page, warren: WarrenServer, hub_url: str) -> None:
    open_demo(page, hub_url, "rabbitlog")
    page.wait("!document.querySelector('#ways').hidden")
    post(warren, "x/rabbitlog", MARKUP, MARKUP)
    page.shows(MARKUP, "#log pre")
    page.shows(MARKUP, "#log .tag")
    assert page.run("document.querySelectorAll('#log img').length") == 0


def test_two_pages_chat(browser: Browser, warren: WarrenServer, hub_url: str) -> None:
    ada, eve = (open_demo(browser.new_page(), hub_url, "chat") for _ in "ae")
    for page, name in ((ada, "Ada"), (eve, "Eve")):
        page.type("[name=name]", name)
    ada.type("[name=text]", "Anybody there?", enter=True)
    eve.shows("Anybody there?", "#talk li:not(.mine)")
    eve.type("[name=text]", MARKUP, enter=True)
    ada.shows(f"Eve\n{MARKUP}", "#talk li:not(.mine)")
    ada.shows("Anybody there?", "#talk li.mine")
    post(warren, "x/chat", "", "not JSON")
    ada.wait("document.querySelector('#talk').innerText.includes('Somebody\\nnot JSON')")


def test_live_stream(page: Page, warren: WarrenServer, hub_url: str) -> None:
    page.open(f"{hub_url}demos/live.html")
    page.type("[name=key]", "eu.#")
    page.click("#choose button")
    sign_in(page)
    page.shows("Connected", "#state")
    post(warren, "x/amq.topic", "us.ny", "not bound")
    post(warren, "x/amq.topic", "eu.fr", MARKUP)
    page.shows(MARKUP, "#log pre")
    page.shows("1 so far", "#count")


@pytest.mark.thorough
def test_a_link_to_a_live_stream(page: Page, hub_url: str) -> None:
    """One of an exchange that is missing says so, and nobody is signed out."""
    page.open(f"{hub_url}demos/live.html#exchange=nonesuch&key=a")
    sign_in(page)
    page.shows("nonesuch", "#problem")
    page.shows("Not connected", "#state")
    page.run("location.hash = 'exchange=amq.topic&key=b'")
    sign_in(page)
    page.shows("Connected", "#state")
    page.wait("!document.querySelector('#problem')")
    page.run("location.hash = 'exchange=nonesuch&key=c'")
    page.shows("nonesuch", "#problem")
    page.wait("document.querySelector('#sign-in').hidden")


def test_tiny_server(page: Page, hub_url: str) -> None:
    open_demo(page, hub_url, "tiny")
    page.shows("from 127.0.0.1", "#log")
    page.type("#site", "<p>visitor {visitor}")
    page.click("#again button")
    page.wait("document.querySelectorAll('#log li').length === 2")
    url = page.run("document.querySelector('#address').href")
    page.open(f"{hub_url}demos/")  # the page that served is gone
    page.open(url)
    page.shows("given up this address")


def test_endpoint_and_driver(browser: Browser, hub_url: str) -> None:
    endpoint = open_demo(browser.new_page(), hub_url, "endpoint")
    endpoint.wait("document.querySelector('#address pre')")
    driver = browser.new_page()
    driver.open(f"{hub_url}demos/driver.html")
    sign_in(driver)
    driver.shows("Ready", "#state")
    url = endpoint.run("document.querySelector('#address pre').textContent")
    driver.type("[name=callback]", url)
    driver.click("[value=subscribe]")
    driver.shows("200 OK", "#log")
    endpoint.shows("Asked: subscribe?", "#log")
    driver.click("#message button")
    endpoint.shows("Rain, then carrots", "#log pre")
    driver.click("[value=unsubscribe]")
    endpoint.shows("Asked: unsubscribe?", "#log")
