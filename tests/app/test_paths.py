"""Which resource a raw path names (rabbithub.md section 1, http_contract.md 2)."""

from __future__ import annotations

import pytest

from warrenmq.app.paths import (
    ApiPath,
    HubPath,
    Prefixes,
    SecretPath,
    Target,
    parse,
    parse_api,
    parse_hub_path,
    parse_secret,
)
from warrenmq.app.problems import Problem


@pytest.mark.parametrize(
    ("path", "target"),
    [
        (b"/endpoint/x/news", Target("endpoint", "/", "x", "news")),
        (b"/subscribe/q/in", Target("subscribe", "/", "q", "in")),
        (b"/endpoint/q/", Target("endpoint", "/", "q", "")),
        (b"/v/endpoint/x/news", Target("endpoint", "v", "x", "news")),
        (b"/%2F/endpoint/x/news", Target("endpoint", "/", "x", "news")),
        (b"/%2f/endpoint/x/a%2fb", Target("endpoint", "/", "x", "a/b")),
        (b"/endpoint/x/a%252Fb", Target("endpoint", "/", "x", "a%2Fb")),
        (b"/endpoint/x/a+b%20c", Target("endpoint", "/", "x", "a+b c")),
        (b"/endpoint/x/%C3%A9", Target("endpoint", "/", "x", "é")),
        (b"/endpoint/x/%", Target("endpoint", "/", "x", "%")),
        (b"/endpoint/endpoint/x/x", Target("endpoint", "endpoint", "x", "x")),
        (b"/a%2Fb/subscribe/x/c", Target("subscribe", "a/b", "x", "c")),
        (b"/a%2Fb/subscriptions/x/c", Target("subscriptions", "a/b", "x", "c")),
        (b"/subscriptions/endpoint/x/c", Target("endpoint", "subscriptions", "x", "c")),
        (b"//endpoint/x/c", Target("endpoint", "", "x", "c")),
    ],
)
def test_resource(path: bytes, target: Target) -> None:
    assert parse(path) == target


@pytest.mark.parametrize(
    "path",
    [b"/", b"", b"/endpoint", b"/endpoint/x", b"/endpoint/y/a", b"/endpoint/x/a/b", b"/a/b/c/d"],
)
def test_none(path: bytes) -> None:
    assert parse(path) is None


@pytest.mark.parametrize(
    "name", [b"%00", b"a%0Db", b"a%0ab", b"%FF", b"%C3", b"x" * 256, b"%C3%A9" * 128]
)
@pytest.mark.parametrize("place", [b"/endpoint/x/%b", b"/%b/endpoint/x/a"])
def test_names_that_can_not_be(name: bytes, place: bytes) -> None:
    with pytest.raises(Problem) as refusal:
        parse(place % name)
    assert refusal.value.status == 400


@pytest.mark.parametrize(
    ("vhost", "name", "path"),
    [
        ("/", "news", "/endpoint/x/news"),
        ("v/w", "a/b c%", "/v%2Fw/endpoint/x/a%2Fb%20c%25"),
        ("é", "ü", "/%C3%A9/endpoint/x/%C3%BC"),
    ],
)
def test_path_and_back(vhost: str, name: str, path: str) -> None:
    target = Target("endpoint", vhost, "x", name)
    assert target.path() == path
    assert parse(path.encode()) == target


@pytest.mark.parametrize(
    ("path", "split"),
    [
        (b"/base/endpoint/x/a", ("/base", b"/endpoint/x/a")),
        (b"/base/hub/endpoint/x/a", ("/base/hub", b"/endpoint/x/a")),
        (b"/rabbithub/endpoint/x/a", ("/rabbithub", b"/endpoint/x/a")),
        (b"/rabbithub", ("/rabbithub", b"/")),
        (b"/rabbithub/subscriptions/errors", ("/rabbithub", b"/subscriptions/errors")),
        (b"/rabbithub/one/subscribe/q/a", ("/rabbithub", b"/one/subscribe/q/a")),
        (b"/rabbithub/api/users", ("", b"/rabbithub/api/users")),
        (b"/rabbithub/hub", ("", b"/rabbithub/hub")),
        (b"/rabbithub/in/secret", ("", b"/rabbithub/in/secret")),
        (b"/base/hubs", ("", b"/base/hubs")),
        (b"/endpoint/x/a", ("", b"/endpoint/x/a")),
    ],
)
def test_prefixes(path: bytes, split: tuple[str, bytes]) -> None:
    if split[0] == "/base":
        assert Prefixes("/base").split(path) == split
    else:
        assert Prefixes("/base/hub").split(path) == split


def test_the_alias_as_base_path_has_everything() -> None:
    assert Prefixes("/rabbithub").split(b"/rabbithub/api/users") == ("/rabbithub", b"/api/users")


def test_secrets() -> None:
    assert parse_secret(b"/in/abc") == SecretPath("/in/", "abc")
    assert parse_secret(b"/in/") == SecretPath("/in/", "")
    assert parse_secret(b"/in/%2F\xff") == SecretPath("/in/", "%2F\xff")
    for path in (b"/in", b"/in/a/b", b"/inn/a", b"/x/in/a", b"/"):
        assert parse_secret(path) is None


def test_places() -> None:
    assert parse_hub_path(b"/subscriptions/errors") == HubPath("/subscriptions/errors")
    for path in (b"/subscriptions/", b"/Subscriptions", b"/subscriptions/x", b"/%73ubscriptions"):
        assert parse_hub_path(path) is None


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        (b"/api/users/a%2Fb", ("users", "a/b")),
        (b"/api/hub/" + b"a" * 8192, ("hub", "a" * 8192)),
        (b"/api/", ("",)),
    ],
)
def test_parts_of_the_api(path: bytes, parts: tuple[str, ...]) -> None:
    found = parse_api(path)
    assert found is not None
    assert found.parts() == parts


@pytest.mark.parametrize(
    "path", [b"/api/users/" + b"a" * 256, b"/api/hub/" + b"a" * 8193, b"/api/hub/%0a"]
)
def test_parts_that_can_not_be(path: bytes) -> None:
    """A name has 255 bytes at most; below `/api/hub` a part may be a URL."""
    found = parse_api(path)
    assert isinstance(found, ApiPath)
    with pytest.raises(Problem) as refusal:
        found.parts()
    assert refusal.value.status == 400
