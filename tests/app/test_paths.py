"""Which resource a raw path names (rabbithub.md section 1, http_contract.md 2)."""

from __future__ import annotations

import pytest

from warrenmq.app.problems import Problem
from warrenmq.app.requests.paths import Prefixes, Target, api_names, parse


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
def test_a_path_names_a_resource(path: bytes, target: Target) -> None:
    assert parse(path) == target


@pytest.mark.parametrize(
    "path",
    [b"/", b"", b"/endpoint", b"/endpoint/x", b"/endpoint/y/a", b"/endpoint/x/a/b", b"/a/b/c/d"],
)
def test_other_paths_name_no_resource(path: bytes) -> None:
    assert parse(path) is None


@pytest.mark.parametrize(
    "name", [b"%00", b"a%0Db", b"a%0ab", b"%FF", b"%C3", b"x" * 256, b"%C3%A9" * 128]
)
@pytest.mark.parametrize("place", [b"/endpoint/x/%b", b"/%b/endpoint/x/a"])
def test_invalid_names_are_refused(name: bytes, place: bytes) -> None:
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
def test_a_path_is_parsed_back_to_its_target(vhost: str, name: str, path: str) -> None:
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
def test_the_base_path_and_the_alias_are_split_off(path: bytes, split: tuple[str, bytes]) -> None:
    if split[0] == "/base":
        assert Prefixes("/base").split(path) == split
    else:
        assert Prefixes("/base/hub").split(path) == split


def test_the_alias_as_base_path_has_everything() -> None:
    assert Prefixes("/rabbithub").split(b"/rabbithub/api/users") == ("/rabbithub", b"/api/users")


@pytest.mark.parametrize(
    ("segments", "names"),
    [
        ([b"users", b"a%2Fb"], ("users", "a/b")),
        ([b"hub", b"a" * 8192], ("hub", "a" * 8192)),
        ([b""], ("",)),
    ],
)
def test_names_below_api(segments: list[bytes], names: tuple[str, ...]) -> None:
    assert api_names(segments) == names


@pytest.mark.parametrize(
    "segments", [[b"users", b"a" * 256], [b"hub", b"a" * 8193], [b"hub", b"%0a"]]
)
def test_invalid_names_below_api(segments: list[bytes]) -> None:
    with pytest.raises(Problem) as refusal:
        api_names(segments)
    assert refusal.value.status == 400
