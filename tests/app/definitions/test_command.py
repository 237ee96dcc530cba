"""`warren definitions`, as an operator uses it: a server, stopped, mended, started again."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pika
import pika.exceptions
import pytest

from tests.app.support import refusal, warren
from tests.support.server import WarrenServer


def exported(data: Path) -> dict[str, Any]:
    result = warren("definitions", "export", "--data", str(data))
    assert (result.returncode, result.stderr) == (0, "")
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def files(directory: Path) -> dict[str, bytes]:
    """All but the lock, which says who looked last."""
    paths = (path for path in directory.rglob("*") if path.is_file() and path.name != "lock")
    return {str(path.relative_to(directory)): path.read_bytes() for path in paths}


def channel(server: WarrenServer, user: str = "guest", password: str = "guest") -> Any:
    credentials = pika.PlainCredentials(user, password)
    parameters = pika.ConnectionParameters(server.host, server.amqp_port, credentials=credentials)
    return pika.BlockingConnection(parameters).channel()


def declare(server: WarrenServer) -> None:
    """A queue with a message in it, bound to an exchange of its own."""
    client = channel(server)
    client.confirm_delivery()
    client.exchange_declare("news", "topic", durable=True)
    client.queue_declare("mail", durable=True, arguments={"x-max-length": 10})
    client.queue_bind("mail", "news", "eu.#")
    client.basic_publish("news", "eu.paris", b"kept", pika.BasicProperties(delivery_mode=2))
    client.connection.close()


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> WarrenServer:
    """A server that was stopped, and what it left."""
    server = WarrenServer(data=tmp_path_factory.mktemp("stopped") / "data")
    with server:
        declare(server)
    return server


def test_export_lists_the_declared_definitions(stopped: WarrenServer) -> None:
    found = exported(stopped.data)
    (user,) = found["users"]
    assert (user["name"], user["tags"]) == ("guest", ["administrator"])
    assert user["argon2_hash"].startswith("$argon2id$")
    assert [vhost["name"] for vhost in found["vhosts"]] == ["/"]
    assert [(queue["name"], queue["arguments"]) for queue in found["queues"]] == [
        ("mail", {"x-max-length": 10})
    ]
    assert [exchange["name"] for exchange in found["exchanges"]] == ["news"]
    assert [binding["routing_key"] for binding in found["bindings"]] == ["eu.#"]


def test_export_to_a_file_is_for_its_owner(stopped: WarrenServer, tmp_path: Path) -> None:
    path = tmp_path / "definitions.json"
    result = warren("definitions", "export", "--data", str(stopped.data), "--file", str(path))
    assert (result.returncode, result.stdout) == (0, "")
    assert json.loads(path.read_text()) == exported(stopped.data)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_imported_users_and_queues_are_in_force(tmp_path: Path) -> None:
    with WarrenServer(data=tmp_path / "data") as server:
        declare(server)
        server.stop()
        found = exported(server.data)
        found["users"] = [{"name": "root", "password": "new", "tags": ["administrator"]}]
        found["permissions"][0]["user"] = "root"
        found["queues"].append({"name": "more", "vhost": "/"})
        found["shoes"] = []
        result = warren(
            "definitions", "import", "-D", str(server.data), "-", given=json.dumps(found)
        )
        said = "5 definitions changed\nshoes: left out: the key is not known\n"
        assert (result.returncode, result.stdout) == (0, said), result.stderr
        server.start()
        with pytest.raises(pika.exceptions.ProbableAuthenticationError):
            channel(server)
        client = channel(server, "root", "new")
        assert client.queue_declare("mail", passive=True).method.message_count == 1
        assert client.basic_get("mail")[2] == b"kept"
        assert client.queue_declare("more", passive=True).method.message_count == 0
        client.connection.close()


def test_import_of_an_export_changes_nothing(stopped: WarrenServer, tmp_path: Path) -> None:
    path = tmp_path / "definitions.json"
    path.write_text(json.dumps(exported(stopped.data)))
    before = files(stopped.data)
    result = warren("definitions", "import", "--data", str(stopped.data), str(path))
    assert (result.returncode, result.stdout) == (0, "0 definitions changed\n"), result.stderr
    assert files(stopped.data) == before


def test_a_bad_edit_is_one_line_and_changes_nothing(stopped: WarrenServer, tmp_path: Path) -> None:
    found = exported(stopped.data)
    found["users"].append({"name": "tony", "password": "x"})
    found["bindings"][0]["destination"] = "lost"
    path = tmp_path / "definitions.json"
    path.write_text(json.dumps(found))
    before = files(stopped.data)
    complaint = refusal("definitions", "import", "--data", str(stopped.data), str(path))
    assert f"file {path}: bindings[0]: binding of queue 'lost'" in complaint
    assert "there is no queue 'lost'; nothing was changed" in complaint
    assert files(stopped.data) == before


def test_export_and_import_are_refused_while_a_server_runs() -> None:
    with WarrenServer() as server:
        for arguments in (["export"], ["import", "/dev/null"]):
            complaint = refusal("definitions", *arguments, "--data", str(server.data))
            assert f"in use by another process (pid {server.pid})" in complaint


def test_a_missing_or_foreign_data_directory_is_refused(tmp_path: Path) -> None:
    for arguments in (["export"], ["import", "-"]):
        complaint = refusal("definitions", *arguments, "--data", str(tmp_path / "none"))
        assert "none: there is none" in complaint
        assert not (tmp_path / "none").exists()
        complaint = refusal("definitions", *arguments, "--data", str(tmp_path))
        assert "give the one that the server ran with" in complaint


def test_unusable_files_are_refused(stopped: WarrenServer, tmp_path: Path) -> None:
    data = str(stopped.data)
    missing = str(tmp_path / "missing" / "file")
    for arguments in (["import", missing], ["export", "--file", missing]):
        complaint = refusal("definitions", *arguments, "--data", data)
        assert complaint == f"warren: file {missing}: No such file or directory\n"
    assert "Missing argument" in refusal("definitions", "import", "--data", data)
