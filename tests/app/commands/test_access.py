"""`warren user`, `vhost`, `policy` and `token`, as people and programs use them."""

from __future__ import annotations

import json
from pathlib import Path

import httpx

from tests.support.server import WarrenServer

from .conftest import Command


def status(warren: WarrenServer, user: str, password: str, path: str = "/api/whoami") -> int:
    return httpx.get(f"{warren.http_url}{path}", auth=(user, password)).status_code


def test_a_user_from_the_first_password_to_the_end(warren: WarrenServer, command: Command) -> None:
    assert command("user", "add", "ada", "--tags", "monitoring", given="secret\n") == (
        "user 'ada' is added\n"
    )
    assert status(warren, "ada", "secret") == 200
    [ada] = [
        one
        for one in map(json.loads, command("user", "list", "--json").splitlines())
        if one["name"] == "ada"
    ]
    assert ada["tags"] == ["monitoring"]
    assert command("user", "password", "ada", given="new\n") == "user 'ada' has a new password\n"
    assert status(warren, "ada", "secret") == 401
    assert status(warren, "ada", "new", "/api/nodes") == 200
    command("user", "tag", "ada", "management")
    assert status(warren, "ada", "new") == 200
    assert status(warren, "ada", "new", "/api/nodes") == 403
    assert command("user", "tag", "ada") == "user 'ada' has no tags\n"
    assert command("user", "add", "ada", given="other\n") == "user 'ada' is changed\n"
    command("user", "permit", "ada", "--write", "^news", "--read", ".*")
    head, row = command("user", "permissions", "ada").splitlines()
    assert head.split() == ["USER", "VHOST", "CONFIGURE", "WRITE", "READ"]
    assert row.split() == ["ada", "/", "-", "^news", ".*"]
    command("user", "forbid", "ada")
    assert command("user", "permissions", "ada") == "no permissions\n"
    command("user", "remove", "ada")
    assert "404" in command("user", "remove", "ada", code=4)
    assert command("user", "remove", "ada", "--idempotent") == "there is no user 'ada'\n"
    command("user", "add", "nobody", "--no-password")
    assert status(warren, "nobody", "") == 401


def test_the_first_administrator_of_a_new_server(tmp_path: Path, command: Command) -> None:
    password = tmp_path / "password"
    password.write_text("secret\n")
    with WarrenServer(dev=False) as server:
        refused = command("queue", "list", "--url", server.http_url, code=4)
        assert "401 user guest may log in" in refused and "prints a link" in refused
        link = next(word for word in server.output().split() if "#/setup/" in word)
        gone = command("setup", link, "ada", "--password-file", f"{password}.gone", code=2)
        assert f"--password-file {password}.gone can't be read" in gone
        made = command("setup", link, "ada", "--password-file", str(password))
        assert made == "user 'ada' is an administrator now: --user ada logs in\n"
        assert status(server, "ada", "secret", "/api/users") == 200
        assert "403 this setup link" in command("setup", link, "bob", given="secret\n", code=4)
        wrong = command("setup", server.http_url, "bob", given="secret\n", code=2)
        assert "/#/setup/SECRET" in wrong


def test_virtual_hosts(command: Command) -> None:
    assert command("vhost", "add", "a/b", "--description", "Of a") == "vhost 'a/b' is added\n"
    assert command("vhost", "add", "a/b", "--tag", "one") == "vhost 'a/b' is changed\n"
    row = next(line for line in command("vhost", "list").splitlines() if line.startswith("a/b"))
    assert row.split() == ["a/b", "classic", "no", "Of", "a", "one"]
    command("vhost", "protect", "a/b")
    assert "412" in command("vhost", "remove", "a/b", code=4)
    command("vhost", "protect", "a/b", "--off")
    assert command("vhost", "remove", "a/b") == "vhost 'a/b' is removed\n"


def test_policies(command: Command) -> None:
    definition = '{"max-length": 7}'
    command("policy", "set", "short", "^tmp", definition, "--apply-to", "queues", "--priority", "3")
    found = json.loads(command("policy", "list", "--vhost", "/", "--json"))
    assert found == {
        "vhost": "/", "name": "short", "pattern": "^tmp", "apply-to": "queues", "priority": 3,
        "definition": {"max-length": 7},
    }  # fmt: skip
    assert command("policy", "list", "--operator") == "no policies\n"
    assert "no JSON" in command("policy", "set", "short", "^tmp", "max-length=7", code=2)
    assert command("policy", "remove", "short") == "policy 'short' in vhost '/' is removed\n"


def test_a_token_is_shown_once_and_revoked(warren: WarrenServer, command: Command) -> None:
    httpx.put(f"{warren.http_url}/endpoint/x/news", auth=("guest", "guest")).raise_for_status()
    assert "--read, --write" in command("token", "create", "board", code=2)
    assert "allowed: {" in command("token", "create", "board", "--read", "news", code=4)
    scopes = ("--read", "x/news", "--write", "x/news", "--tunnel", "ada")
    secret = command("token", "create", "board", *scopes, "--expires-in", "600").strip()
    assert command("publish", "x", "news", "hi", "--token", secret) == "published\n"
    [listed] = command("token", "list", "--json").splitlines()
    assert secret not in listed and len(json.loads(listed)["scopes"]) == 3
    command("token", "revoke", json.loads(listed)["id"])
    assert "401" in command("publish", "x", "news", "hi", "--token", secret, code=4)


def test_a_token_that_manages(warren: WarrenServer, command: Command) -> None:
    scopes = ("--manage", "read", "--manage", "write:vhosts/ci-*")
    secret = command("token", "create", "ci", *scopes).strip()
    assert command("vhost", "add", "ci-1", "--token", secret) == "vhost 'ci-1' is added\n"
    assert "403" in command("vhost", "add", "other", "--token", secret, code=4)
    assert "ci-1" in command("vhost", "list", "--token", secret)
    command("vhost", "remove", "ci-1")
    assert "400" in command("token", "create", "ci", "--manage", "all", code=4)
    [listed] = command("token", "list", "--json").splitlines()
    command("token", "revoke", json.loads(listed)["id"])


def test_definitions_of_a_running_server(command: Command, tmp_path: Path) -> None:
    command("vhost", "add", "orders")
    command("policy", "set", "short", "^tmp", '{"max-length": 7}', "--vhost", "orders")
    file = str(tmp_path / "definitions.json")
    command("definitions", "export", "--file", file, "--vhost", "orders")
    assert "short" not in command("definitions", "export", "--vhost", "/")
    assert '"users"' in command("definitions", "export")
    command("policy", "remove", "short", "--vhost", "orders")
    shown = command("definitions", "import", file, "--vhost", "orders")
    assert shown == f"the definitions of {file} are in force\n"
    assert "^tmp" in command("policy", "list", "--vhost", "orders")
    Path(file).write_text('{"queues": 1}')
    assert "nothing was changed" in command("definitions", "import", file, code=4)
    assert "--vhost is for" in command(
        "definitions", "export", "--vhost", "/", "--data", "d", code=2
    )
    command("vhost", "remove", "orders")
