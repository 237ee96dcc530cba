"""The tests tried against a mutation: the module's own, its folder's, then those of its room."""

from __future__ import annotations

from pathlib import Path

_SECTIONS = "tests/conformance/test_s"
# The conformance tests and whole-broker tests where a user would notice the room's mistakes. The
# longest name that fits a module is its room. Whole suites would find little more and take minutes.
SUITES = {
    "core/auth": (f"{_SECTIONS}8_rights.py", f"{_SECTIONS}8_users.py"),
    "core/definitions": ("tests/core/test_durability.py", f"{_SECTIONS}5_durable.py"),
    "core/message": (
        "tests/core/test_broker.py",
        f"{_SECTIONS}6_publish.py",
        f"{_SECTIONS}4_types.py",
    ),
    "core/policy": (f"{_SECTIONS}8_policies.py",),
    "core/proto": (
        f"{_SECTIONS}1_errors.py",
        f"{_SECTIONS}3_channel.py",
        f"{_SECTIONS}6_settle.py",
        f"{_SECTIONS}6_consume.py",
        f"{_SECTIONS}6_publish.py",
        f"{_SECTIONS}7_tx.py",
        f"{_SECTIONS}4_exchange.py",
        f"{_SECTIONS}5_queue.py",
        f"{_SECTIONS}6_reply_to.py",
        f"{_SECTIONS}8_rights.py",
        f"{_SECTIONS}2_connection.py",
        f"{_SECTIONS}7_confirm.py",
        "tests/core/message/test_deduplication.py",
        "tests/core/test_scan_agreement.py",
    ),
    "core/publish": (
        f"{_SECTIONS}6_publish.py",
        f"{_SECTIONS}7_tx.py",
        f"{_SECTIONS}7_confirm.py",
        "tests/core/message/test_deduplication.py",
        "tests/core/test_scan_agreement.py",
    ),
    "core/queue": (
        "tests/core/test_broker.py",
        f"{_SECTIONS}5_queue.py",
        f"{_SECTIONS}5_limits.py",
        f"{_SECTIONS}5_dead_letter.py",
        f"{_SECTIONS}5_stream.py",
        f"{_SECTIONS}5_arguments.py",
        f"{_SECTIONS}5_priority.py",
        f"{_SECTIONS}5_delivery_limit.py",
        f"{_SECTIONS}6_single_active.py",
        "tests/model/test_inside.py",
    ),
    "core/replay": (f"{_SECTIONS}4_persistent.py",),
    "core/republish": (
        "tests/core/proto/test_commit.py",
        f"{_SECTIONS}5_dead_letter.py",
        f"{_SECTIONS}4_delayed.py",
    ),
    "core/resources": ("tests/core/test_paging.py", f"{_SECTIONS}2_blocked.py"),
    "core/route": (f"{_SECTIONS}4_types.py", f"{_SECTIONS}4_exchange.py"),
    "core/server": (
        f"{_SECTIONS}2_connection.py",
        f"{_SECTIONS}1_errors.py",
        f"{_SECTIONS}2_transports.py",
        f"{_SECTIONS}2_blocked.py",
    ),
    "core/store": (
        "tests/core/test_durability.py",
        "tests/core/test_paging.py",
        "tests/core/test_damage.py",
        "tests/core/test_durability_model.py",
    ),
    "core/vhost": (
        "tests/core/test_vhost.py",
        f"{_SECTIONS}5_queue.py",
        f"{_SECTIONS}4_exchange.py",
    ),
    "core/wire": (f"{_SECTIONS}1_errors.py", "tests/conformance/test_bad_input_amqp.py"),
    "core": ("tests/core/test_broker.py", f"{_SECTIONS}5_queue.py", "tests/model/test_inside.py"),
    "hub": ("tests/hub/test_service.py", "tests/conformance/test_hub_promises.py"),
    "app/conformance": ("tests/app/conformance",),
    "app/routes": (
        "tests/conformance/test_rabbithub.py",
        "tests/conformance/test_http_contract.py",
    ),
    "app": (
        "tests/app/routes",
        "tests/conformance/test_bad_input_http.py",
        "tests/conformance/test_http_contract.py",
    ),
}


def suites(root: Path, module: str) -> list[str]:
    """Paths of tests, the likeliest first and none twice; `module` is like `core/clock.py`."""
    path = Path(module)
    own = Path("tests") / path.parent / f"test_{path.stem}.py"
    folder = Path("tests") / path.parent
    mirrored = [own.as_posix()] if len(path.parts) < 3 else [own.as_posix(), folder.as_posix()]
    room = max((name for name in SUITES if module.startswith(f"{name}/")), key=len)
    return [one for one in dict.fromkeys([*mirrored, *SUITES[room]]) if (root / one).exists()]
