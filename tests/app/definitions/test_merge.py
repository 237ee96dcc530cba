"""Files and what is kept: a round trip changes nothing, an edit changes what it says."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.core.definitions.support import NotingStore, restarted
from tests.core.wire.support import TABLES
from tests.support.users import GUEST_HASH
from warrenmq.app.definitions.document import parse
from warrenmq.app.definitions.left_out import LeftOut
from warrenmq.app.definitions.merge import merged
from warrenmq.core.auth import Users
from warrenmq.core.definitions.decode import decode
from warrenmq.core.definitions.facts import DeliveryCounts, Facts
from warrenmq.core.definitions.keys import DefinitionKind, key_of
from warrenmq.core.definitions.kinds import (
    BindingDefinition,
    Definition,
    ExchangeDefinition,
    OperatorPolicyDefinition,
    PermissionDefinition,
    PolicyDefinition,
    QueueDefinition,
    TopicPermissionDefinition,
    UserDefinition,
    VhostDefinition,
    VhostLimitsDefinition,
)
from warrenmq.core.errors import ConfigError
from warrenmq.core.queue.names import INNER_MARK
from warrenmq.hub.engine.own import delay

from .support import ALL, QUEUE, Kept, document, gone, imported, kept


def test_the_file_has_every_section_of_rabbitmq() -> None:
    found = document(kept())
    assert found["rabbit_version"] == found["rabbitmq_version"] == "3.13.7"
    assert found["users"][0] == {
        "name": "guest",
        "password_hash": "",
        "argon2_hash": GUEST_HASH,
        "hashing_algorithm": "rabbit_password_hashing_sha256",
        "tags": ["administrator"],
        "limits": {},
    }
    described = {"description": "for later", "tags": ["a", "b"]}
    assert found["vhosts"] == [{"name": "/"}, {"name": "spare", **described, "metadata": described}]
    assert found["permissions"][2] == {
        "user": "tony", "vhost": "/", "configure": "", "write": "^mail$", "read": "",
    }  # fmt: skip
    assert found["exchanges"][0] == {
        "name": "news", "vhost": "/", "type": "topic", "durable": True, "auto_delete": True,
        "internal": False, "arguments": {"alternate-exchange": "amq.fanout"},
    }  # fmt: skip
    assert found["queues"][0] == {
        "name": "mail", "vhost": "/", "durable": True, "auto_delete": False,
        "arguments": {"x-max-length": 5},
    }  # fmt: skip
    assert found["bindings"][0] == {
        "source": "news", "vhost": "/", "destination": "mail", "destination_type": "queue",
        "routing_key": "eu.#", "arguments": {},
    }  # fmt: skip
    assert found["users"][1]["limits"] == {"max-channels": 9}
    assert found["topic_permissions"][0] == {
        "user": "tony", "vhost": "/", "exchange": "amq.topic", "write": "^{username}", "read": ".*",
    }  # fmt: skip
    assert found["policies"][0] == {
        "vhost": "/", "name": "short", "pattern": "^mail", "apply-to": "queues", "priority": 3,
        "definition": {"max-length": 5, "overflow": "drop-head"},
    }  # fmt: skip
    assert found["parameters"][0] == {
        "vhost": "/", "component": "operator_policy", "name": "short",
        "value": {
            "pattern": "^mail", "apply-to": "queues", "priority": 0,
            "definition": {"max-length": 4},
        },
    }  # fmt: skip
    assert found["parameters"][2] == {
        "vhost": "/", "component": "vhost-limits", "name": "limits",
        "value": {"max-connections": -1, "max-queues": 9},
    }  # fmt: skip
    assert found["global_parameters"] == []


def test_importing_an_export_changes_nothing() -> None:
    assert imported(kept(), document(kept())) == kept()


def test_a_whole_file_is_imported_into_an_empty_store() -> None:
    found = imported({}, document(kept()))
    assert document(found) == document(kept())
    restarted(NotingStore(found))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(TABLES, st.text(min_size=1, max_size=10).filter(str.isidentifier))
def test_names_and_arguments_of_all_kinds_come_through(arguments: Any, name: str) -> None:
    arguments = {f"k{key}": value for key, value in arguments.items()}
    definitions: list[Definition] = [
        VhostDefinition(name),
        UserDefinition(name, GUEST_HASH, (name,)),
        PermissionDefinition(name, name, name, name, name),
        ExchangeDefinition(name, name, "direct", True, True, arguments),
        QueueDefinition(name, name, 1, True, arguments),
        BindingDefinition(name, name, False, name, name, arguments),
    ]
    current = kept(definitions)
    assert imported(current, document(current)) == current
    assert document(imported({}, document(current))) == document(current)


# -- replaced: users, vhosts, permissions


def test_a_user_missing_from_the_file_is_deleted_with_its_permissions() -> None:
    file = {"users": [user for user in document(kept())["users"] if user["name"] != "tony"]}
    assert gone(kept(), imported(kept(), file)) == {one.key() for one in ALL if "tony" in one}


def test_a_password_in_clear_is_hashed() -> None:
    file = document(kept())
    file["users"] = [{"name": "root", "password": "secret", "tags": "administrator, monitoring"}]
    file["permissions"] = file["topic_permissions"] = []
    found = imported(kept(), file)
    assert not [value for value in found.values() if b"secret" in value]
    user = decode(key := key_of(DefinitionKind.USER, "root"), found[key])
    assert isinstance(user, UserDefinition)
    assert user.tags == ("administrator", "monitoring")
    users = Users()
    users.add_hashed(user.name, user.password_hash)
    assert users.passwords.check("root", "secret", loopback=True) is not None


def test_permissions_are_replaced() -> None:
    file = {"permissions": [
        {"user": "tony", "vhost": "spare", "configure": "a", "write": "b", "read": "c"}
    ]}  # fmt: skip
    found = imported(kept(), file)
    definitions = [decode(key, found[key]) for key in found]
    assert [one for one in definitions if isinstance(one, PermissionDefinition)] == [
        PermissionDefinition("tony", "spare", "a", "b", "c")
    ]
    assert len(found) == len(kept()) - 2


def test_a_deleted_vhost_takes_exchanges_bindings_and_permissions() -> None:
    found = imported(kept(), {"vhosts": [{"name": "/"}, {"name": "new"}]})
    spare = {one.key() for one in ALL if "spare" in one}
    assert len(spare) == 8
    assert gone(kept(), found) == spare
    assert found.keys() - kept().keys() == {VhostDefinition("new").key()}


def test_a_missing_section_changes_nothing() -> None:
    assert imported(kept(), {}) == kept()
    assert imported(kept(), {"queues": [], "exchanges": [], "bindings": []}) == kept()
    users = document(kept())["users"]
    assert imported(kept(), {"users": users, "vhosts": document(kept())["vhosts"]}) == kept()


def definitions(found: Kept, kind: type[Definition]) -> list[Definition]:
    return [one for one in (decode(key, found[key]) for key in found) if isinstance(one, kind)]


def test_policies_and_parameters_are_replaced() -> None:
    policy = document(kept())["policies"][0] | {"name": "new", "priority": 8}
    found = imported(kept(), {"policies": [policy]})
    (made,) = definitions(found, PolicyDefinition)
    assert isinstance(made, PolicyDefinition)
    assert (made.vhost, made.name, made.priority) == ("/", "new", 8)
    assert len(found) == len(kept()) - 1
    found = imported(kept(), {"parameters": []})
    gone_kinds = (OperatorPolicyDefinition, VhostLimitsDefinition)
    assert gone(kept(), found) == {one.key() for one in ALL if isinstance(one, gone_kinds)}
    found = imported(kept(), {"topic_permissions": []})
    assert definitions(found, TopicPermissionDefinition) == []


def test_a_policy_needs_a_pattern_and_a_definition_only() -> None:
    policy = {"vhost": "/", "name": "new", "pattern": "", "definition": {"max-length": 1}}
    found = imported(kept(), {"policies": [policy]})
    assert definitions(found, PolicyDefinition) == [
        PolicyDefinition("/", "new", "", "all", 0, {"max-length": 1})
    ]


def test_rabbitmqctl_writes_objects_as_pairs() -> None:
    file = document(kept())
    value = file["parameters"][0]["value"]
    value["definition"] = [list(pair) for pair in value["definition"].items()]
    file["parameters"][2]["value"] = [["max-connections", -1], ["max-queues", 9]]
    file["users"][1]["limits"] = [["max-channels", 9]]
    assert imported(kept(), file) == kept()


def test_limits_of_a_vhost_entry_apply_without_a_parameter() -> None:
    file = document(kept())
    file["parameters"] = [one for one in file["parameters"] if one["vhost"] == "/"]
    for vhost in file["vhosts"]:
        vhost["limits"] = {"max-connections": 3}
    assert definitions(imported(kept(), file), VhostLimitsDefinition) == [
        VhostLimitsDefinition("/", {"max-connections": -1, "max-queues": 9}),
        VhostLimitsDefinition("spare", {"max-connections": 3}),
    ]
    del file["parameters"]
    assert definitions(imported(kept(), file), VhostLimitsDefinition) == [
        VhostLimitsDefinition("/", {"max-connections": 3}),
        VhostLimitsDefinition("spare", {"max-connections": 3}),
    ]


def test_vhost_properties_are_read_from_entry_or_metadata() -> None:
    wanted: dict[str, Any] = {
        "description": "d", "tags": ["a", "b"], "default_queue_type": "quorum",
    }  # fmt: skip
    for vhost in (
        {"name": "/", **wanted},
        {"name": "/", "metadata": wanted},
        {"name": "/", "description": "d", "tags": "a, b,", "metadata": {**wanted, "tags": "x"}},
    ):
        vhosts = [vhost, *document(kept())["vhosts"][1:]]
        found = definitions(imported(kept(), {"vhosts": vhosts}), VhostDefinition)[0]
        assert found == VhostDefinition("/", wanted)


def test_an_argon2_hash_in_password_hash_is_accepted() -> None:
    file = document(kept())
    for user in file["users"]:
        user |= {"password_hash": user.pop("argon2_hash"), "hashing_algorithm": "argon2"}
    assert imported(kept(), file) == kept()


def test_an_empty_hash_allows_no_login() -> None:
    user = {"name": "tony", "password_hash": "", "tags": ""}
    found = imported(kept(), {"users": [document(kept())["users"][0], user]})
    assert document(found)["users"][1]["password_hash"] == ""
    users = restarted(NotingStore(found))[0].users
    assert users.passwords.check("tony", "", loopback=True) is None


def test_facts_are_not_exported_and_stay() -> None:
    store = NotingStore(kept())
    DeliveryCounts(Facts(store), QUEUE.id).store(5, 3)
    assert document(store.definitions) == document(kept())
    after = imported(store.definitions, {"policies": []})
    policies = {one.key() for one in ALL if isinstance(one, PolicyDefinition)}
    assert gone(store.definitions, after) == policies


def test_inner_queues_are_not_exported_and_stay() -> None:
    inner = QueueDefinition("/", f"delay{INNER_MARK}news", 99, False, {})
    current = kept([*ALL, inner])
    assert document(current) == document(kept())
    assert imported(current, document(current)) == current


# -- merged: exchanges, queues, bindings


def test_a_queue_keeps_its_id_and_so_its_messages() -> None:
    file = document(kept())
    file["queues"][0]["arguments"] = {"x-max-length": 9}
    found = imported(kept(), file)
    key = QUEUE.key()
    assert decode(key, found[key]) == QUEUE._replace(arguments={"x-max-length": 9})
    assert {name for name in found if found[name] != kept()[name]} == {key}


def test_new_queues_get_random_ids() -> None:
    queues = [{"name": name, "vhost": "/"} for name in ("a", "b")]
    found = imported(kept(), {"queues": queues})
    keys = [key_of(DefinitionKind.QUEUE, "/", name) for name in ("a", "b")]
    made = [decode(key, found[key]) for key in keys]
    ids = {queue.id for queue in made if isinstance(queue, QueueDefinition)}
    assert len(ids) == 2
    assert all(1 << 62 <= one < 1 << 63 for one in ids)


def test_an_equivalent_binding_is_not_added() -> None:
    bindings = [
        {"source": "amq.fanout", "vhost": "/", "destination": "news",
         "destination_type": "exchange", "arguments": {"n": 5.0}},
    ]  # fmt: skip
    assert imported(kept(), {"bindings": bindings * 2}) == kept()


def test_an_existing_exchange_is_changed() -> None:
    exchange = {"name": "news", "vhost": "/", "type": "direct"}
    found = imported(kept(), {"exchanges": [exchange]})
    made = ExchangeDefinition("/", "news", "direct", False, False, {})
    assert decode(made.key(), found[made.key()]) == made


def test_parameters_of_the_server_are_kept() -> None:
    own = {"name": "cluster_name", "value": "ours"}
    found = imported(kept(), {"global_parameters": [own]})
    assert document(found)["global_parameters"] == [own]
    broker, _ = restarted(NotingStore(found))
    assert [one.name for one in broker.global_parameters.all()] == ["cluster_name"]
    assert imported(found, {"global_parameters": []}) == kept()


def test_rabbitmq_values_without_effect_are_accepted() -> None:
    file = document(kept())
    file["vhosts"][0] |= {
        "description": "", "tags": [], "limits": [],
        "metadata": {"description": "", "tags": ""}, "default_queue_type": "undefined",
    }  # fmt: skip
    file["queues"][0]["type"] = "classic"
    file["global_parameters"] = [{"name": "internal_cluster_id", "value": "rabbitmq-cluster-id-x"}]
    file["original_cluster_name"] = "rabbit@host"
    assert imported(kept(), file) == kept()


# -- refused


def edited(section: str, number: int, **fields: Any) -> dict[str, Any]:
    file = document(kept())
    entry = file[section][number]
    for name, value in fields.items():
        if value is None:
            del entry[name]
        else:
            entry[name] = value
    return file


def added(section: str, entry: Any) -> dict[str, Any]:
    file = document(kept())
    file[section].append(entry)
    return file


BAD = [
    (b"{", "the file is not JSON: "),
    (b'{"users": [], "users": []}', "the file is not JSON: an object has the key 'users' twice"),
    (b'{"queues": NaN}', "the file is not JSON: NaN is no JSON number"),
    (b"[" * 100_000, "the file is nested too deeply"),
    (b"[]", "Expected `object`, got `array`"),
    ({"users": None}, "users: Expected `array`, got `null`"),
    (edited("users", 0, name=5), "users[0].name: Expected `str`, got `int`"),
    (
        edited("users", 1, argon2_hash=None, password_hash=None),
        "users[1]: user 'tony' needs either password_hash, argon2_hash or password",
    ),
    (
        edited("users", 1, argon2_hash=None, password_hash=GUEST_HASH),
        "users[1]: a password hash of rabbit_password_hashing_sha256 is base64, this is not",
    ),
    (
        edited("users", 1, argon2_hash=None, password_hash="kI3GCqW5JLMJa4iX1lo7X4D6XbYq"),
        "users[1]: a password hash of rabbit_password_hashing_sha256 has 36 octets, this has 21",
    ),
    (
        edited("users", 1, argon2_hash=None, password_hash="x", hashing_algorithm="rot13"),
        "users[1]: hashing algorithm 'rot13' can't be checked; known are argon2, ",
    ),
    (edited("users", 1, argon2_hash="$argon2id$x"), "users[1]: the password hash is not an ar"),
    (edited("users", 1, password_hash="x"), "users[1]: user 'tony' needs either password_hash, ar"),
    (edited("users", 1, name="guest"), "users[1]: user 'guest' stands in users[0] too"),
    (edited("users", 1, name=""), "users[1]: user '': a user name or tag has 0 bytes"),
    (edited("users", 1, limits={"max-lengths": 1}), "users[1].limits: limits of user 'tony': "),
    (edited("users", 1, limits={"max-channels": -2}), "users[1].limits: limits of user 'tony': "),
    (edited("users", 1, name="\ud800"), "users[1]: "),
    (edited("vhosts", 1, name=""), "vhosts[1]: the name of a vhost has 0 bytes"),
    (edited("vhosts", 1, name="a\0b"), "vhosts[1]: the name of vhost 'a\\x00b' contains non-print"),
    (edited("users", 1, tags=["a\0b"]), "users[1]: user 'tony': the user name or tag 'a\\x00b'"),
    (edited("queues", 0, name="a\0b"), "queues[0]: queue name 'a\\x00b' contains a NUL"),
    (edited("vhosts", 1, limits=[{"max-queues": 1}]), "vhosts[1].limits[0]: Expected `array`"),
    (edited("vhosts", 1, default_queue_type=5), "vhosts[1].default_queue_type: "),
    (edited("vhosts", 1, default_queue_type="odd"), "vhosts[1]: metadata: default_queue_type: Inv"),
    (edited("vhosts", 1, tags=None, metadata={"tags": 5}), "vhosts[1]: metadata: tags: Expected"),
    (
        edited("vhosts", 1, metadata={"protected_from_deletion": "no"}),
        "vhosts[1]: metadata: protected_from_deletion: Expected `bool`, got `str`",
    ),
    (edited("permissions", 0, user="nobody"), "permissions[0]: permission of user 'nobody'"),
    (edited("permissions", 0, read="(a"), "permissions[0]: permission of user 'guest'"),
    (edited("exchanges", 0, name="amq.mine"), "exchanges[0]: exchange name 'amq.mine' contains"),
    (edited("exchanges", 0, vhost="v"), "exchanges[0]: exchange 'news' in vhost 'v': there is no"),
    (edited("queues", 0, name="x" * 256), "queues[0]: the name of a queue has 256 bytes"),
    (
        edited("queues", 0, type="quorum", arguments={"x-queue-type": "classic"}),
        "queues[0]: type is 'quorum' and x-queue-type is 'classic'",
    ),
    (edited("queues", 0, arguments={"x-max-length": "5"}), "queues[0]: queue 'mail' in vhost '/'"),
    (edited("queues", 0, arguments={"a": {"$b": 1}}), "queues[0]: arguments: unknown tag '$b'"),
    (edited("bindings", 0, source="x"), "bindings[0]: binding of queue 'mail' to exchange 'x'"),
    (edited("bindings", 0, destination="x"), "bindings[0]: binding of queue 'x' to"),
    (edited("bindings", 0, routing_key="x" * 256), "bindings[0]: a routing key has 256 bytes"),
    (edited("bindings", 2, source="amq.match", vhost="/", arguments={"x-match": "no"}),
     "bindings[2]: binding of exchange 'amq.topic' to exchange 'amq.match'"),
    (edited("policies", 0, pattern="("), "policies[0]: policy 'short' in vhost '/': pattern: p"),
    (edited("policies", 0, definition={}), "policies[0]: policy 'short' in vhost '/': its defin"),
    (edited("policies", 0, definition=[["max-length"]]), "policies[0].definition[0]: Expected"),
    (edited("policies", 0, priority=2**63), "policies[0]: 9223372036854775808 does not fit into"),
    (edited("policies", 0, vhost="v"), "policies[0]: policy 'short' in vhost 'v': there is no vh"),
    (added("policies", document(kept())["policies"][1]), "policies[2]: policy 'short' in vhost '"),
    (
        edited("parameters", 0, value={"pattern": ""}),
        "parameters[0]: value: Object missing required field `definition`",
    ),
    (edited("parameters", 0, value=[["pattern", ""]]), "parameters[0]: value: Expected `object`"),
    (
        edited("parameters", 0, value={"pattern": "", "definition": {"ha-mode": "all"}}),
        "parameters[0]: operator policy 'short' in vhost '/': ha-mode: operator policies don't",
    ),
    (edited("parameters", 2, name="max"), "parameters[2]: name is 'max', limits of a vhost are"),
    (edited("parameters", 2, value={"max-q": 1}), "parameters[2]: limits of vhost '/': vhost '/'"),
    (edited("topic_permissions", 0, write="("), "topic_permissions[0]: topic permission of user"),
    (edited("topic_permissions", 0, user="x"), "topic_permissions[0]: topic permission of user"),
    (added("global_parameters", {"name": "p"}), "global_parameters[0]: Object missing"),
    (
        added("global_parameters", {"name": "", "value": 1}),
        "global_parameters[0]: global parameter '': the name has 0 bytes, not 1 to 255",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("file", "complaint"), BAD, ids=[complaint for _, complaint in BAD])
def test_a_bad_edit_is_named_by_its_place(file: Any, complaint: str) -> None:
    before = kept()
    with pytest.raises(ConfigError) as caught:
        imported(before, deepcopy(file))
    assert str(caught.value).startswith(complaint)
    assert before == kept()


def test_what_can_not_be_held_is_left_out_and_listed() -> None:
    policy = {"vhost": "/", "pattern": "", "definition": {"odd": 1}}
    file = {
        "shoes": [],
        "users": [{"name": "guest", "password_hash": GUEST_HASH, "tags": "administrator", "x": 1}],
        "vhosts": [{"name": "/", "tracing": True}, {"name": "spare"}],
        "policies": [
            {**policy, "name": "some", "definition": {"max-length": 1, "odd": 1}},
            {**policy, "name": "none"},
        ],
        "parameters": [
            {"component": "shovel", "vhost": "/", "name": "s", "value": {"src-uri": "amqp://"}},
        ],
        "exchanges": [{"name": "odd", "vhost": "/", "type": "x-odd"},
                      {"name": "now", "vhost": "/", "type": "topic", "durable": False}],
        "queues": [{"name": "odd", "vhost": "/", "type": "x-odd"}, {"name": "new", "vhost": "/"}],
        "bindings": [
            {"source": source, "vhost": "/", "destination": destination, "destination_type": kind}
            for source, kind, destination in (
                ("odd", "queue", "new"), ("amq.topic", "exchange", "now"),
                ("amq.topic", "queue", "odd"), ("amq.topic", "queue", "new"),
            )
        ],
    }  # fmt: skip
    left_out = LeftOut()
    changed = merged(kept(), parse(json.dumps(file).encode(), left_out), left_out)
    made = [decode(key, value) for key, value in changed.items() if value is not None]
    assert BindingDefinition("/", "amq.topic", False, "new", "", {}) in made
    assert PolicyDefinition("/", "some", "", "all", 0, {"max-length": 1}) in made
    assert not [one for one in made if getattr(one, "name", "") in ("none", "odd", "now")]
    assert [one.split(": left out: ")[0] for one in left_out.sentences] == [
        "shoes", "users[0].x", "vhosts[0].tracing",
        "policies[0]: policy 'some' in vhost '/'", "policies[1]: policy 'none' in vhost '/'",
        "parameters[0]: shovel parameter 's' in vhost '/'",
        "exchanges[0]: exchange 'odd' in vhost '/'", "exchanges[1]: exchange 'now' in vhost '/'",
        "queues[0]: queue 'odd' in vhost '/'",
        "bindings[0]: binding of queue 'new' to exchange 'odd' by key '' in vhost '/'",
        "bindings[1]: binding of exchange 'now' to exchange 'amq.topic' by key '' in vhost '/'",
        "bindings[2]: binding of queue 'odd' to exchange 'amq.topic' by key '' in vhost '/'",
    ]  # fmt: skip


def test_a_vhost_with_queues_is_not_deleted() -> None:
    with pytest.raises(ConfigError, match="'/' is not among them and still has queue 'mail'"):
        imported(kept(), {"vhosts": [{"name": "spare"}]})


def test_existing_dangling_definitions_stay_until_repaired() -> None:
    lost = BindingDefinition("/", "news", False, "lost", "k", {})
    current = kept([*ALL, lost])
    assert lost.key() in imported(current, {})
    mended = imported(current, {"queues": [{"name": "lost", "vhost": "/"}]})
    restarted(NotingStore(mended))


@pytest.mark.parametrize(
    ("section", "entry"),
    [
        ("queues", {"name": "hub.dead", "arguments": {"x-max-length": 1}}),
        ("queues", {"name": "hub.retry.5s", "arguments": {"x-message-ttl": 5}}),
        ("queues", {"name": "hub.mine"}),
        ("exchanges", {"name": "hub.topics", "type": "fanout"}),
    ],
)
def test_reserved_names_are_refused(section: str, entry: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=rf"{section}\[0\]: .*reserved prefix 'hub\.\*'"):
        imported(kept(), {section: [{"vhost": "/", **entry}]})


def test_exported_definitions_of_the_hub_are_imported() -> None:
    own: list[Definition] = [
        *(QueueDefinition("/", one, 90 + number, False, {}) for number, one in enumerate(
            ("hub.dead", "hub.sub." + "0f" * 16))),
        QueueDefinition("/", "hub.retry.5s", 99, False, delay(5)[1].arguments),
        ExchangeDefinition("/", "hub.retry.5s", "fanout", False, False, {}),
        ExchangeDefinition("/", "hub.topics", "direct", False, False, {}),
    ]  # fmt: skip
    file = document(kept([*ALL, *own]))
    assert kept(own).keys() <= imported(kept(), file).keys()
