"""The commands of clients of `/stream` over WebSocket: publishes with confirms, acks and nacks.

`{"publish": {"routing_key", "headers", "content_type", "body" | "body_base64", ...}, "ref"}` is
answered by `{"confirmed": ref}` or `{"refused": ref, "problem"}`, in order; `{"ack": id}` and
`{"nack": id, "requeue"}` settle messages.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ...core.auth import User
from ...core.errors import ChannelError
from ...core.message.model import Properties
from ...core.wire.websocket import Ending
from ...hub.engine.port import PublishOutcome, SinglePublish
from ...hub.live.queue_reading import ManuallyAcked
from ...hub.requests import Resource
from ..context import Context
from ..http.partial_messages import PartialMessages
from ..problems import Problem, low_on_disk, problem_of, refused_by_queue
from ..requests.strict_json import loads

_TEXTS: Final = (
    "content_type", "content_encoding", "correlation_id", "reply_to", "expiration", "message_id",
    "type", "app_id",
)  # fmt: skip
_NUMBERS: Final = ("priority", "timestamp")
_OWN: Final = ("routing_key", "headers", "body", "body_base64", "persistent")
_KNOWN: Final = frozenset((*_TEXTS, *_NUMBERS, *_OWN))
MAX_BYTES: Final = 1024 * 1024
"""Of a command: it is in memory while it comes in. Larger messages are published by POST."""
Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Publish:
    """A publish to be made, or why it is refused."""

    ref: Any
    message: SinglePublish | Problem


class Commands:
    """Carries out the commands of one connection, whose source is `resource`."""

    def __init__(self, context: Context, user: User, resource: Resource, source: object) -> None:
        self._context = context
        self._user = user
        self._resource = resource
        self._source = source

    def inbound(self, end: Callable[[Ending], None]) -> PartialMessages:
        """Returns what puts commands together; `end` is called when memory is short."""
        return PartialMessages(MAX_BYTES, self._context.unfinished, self._user.name, end)

    async def carry_out(self, texts: Sequence[bytes]) -> list[Answer]:
        """Returns the answers, in the order of the commands; settling has none unless it fails."""
        answers: list[Answer] = []
        publishes: list[_Publish] = []
        for text in texts:
            ref: Any = None
            try:
                command = loads(text)
                ref = command.get("ref") if isinstance(command, dict) else None
                _check(command)
                if "publish" in command:
                    message = _message(command["publish"], self._resource)
                    publishes.append(_Publish(ref, message))
                else:
                    self._settle(command)
            except Exception as error:
                publishes.append(_Publish(ref, problem_of(error)))
        answers += await self._publish(publishes)
        return answers

    # -- publishing

    async def _publish(self, publishes: Sequence[_Publish]) -> list[Answer]:
        messages = [one.message for one in publishes if isinstance(one.message, SinglePublish)]
        try:
            found = await self._context.engine.publish_each(
                self._user, self._resource.vhost, messages
            )
        except ChannelError as error:  # The virtual host was deleted.
            found = [error] * len(messages)
        outcomes = iter(found)
        return [
            _refused(one.ref, one.message)
            if isinstance(one.message, Problem)
            else _answer(one.ref, next(outcomes))
            for one in publishes
        ]

    # -- settling

    def _settle(self, command: Mapping[str, Any]) -> None:
        word = "ack" if "ack" in command else "nack"
        if not isinstance(self._source, ManuallyAcked):
            raise Problem(400, "acks are not enabled here: see ?ack=manual of a queue")
        requeue = command.get("requeue", True)
        if not isinstance(requeue, bool):
            raise Problem(400, f"requeue is {str(requeue)[:80]!r}, not true or false")
        found = command[word]
        for one in found if isinstance(found, list) else [found]:
            settled = self._source.settle(str(one), is_ack=word == "ack", requeue=requeue)
            if not settled:
                raise Problem(404, f"no message '{str(one)[:80]}' is waiting for {word}")


def _check(command: Any) -> None:
    """Raises `Problem` 400 unless it is one command."""
    verbs = {"publish", "ack", "nack"}
    if not isinstance(command, dict) or len(command.keys() & verbs) != 1:
        raise Problem(400, 'a command is {"publish": {...}}, {"ack": "id"} or {"nack": "id"}')


def _message(given: Any, resource: Resource) -> SinglePublish:
    """Reads a message. Raises `Problem` 400."""
    if not isinstance(given, dict):
        raise Problem(400, "publish has to be an object")
    unknown = sorted(given.keys() - _KNOWN)
    if unknown:
        raise Problem(400, f"publish has an unknown member '{unknown[0][:80]}'")
    fields: dict[str, Any] = {name: _of(given, name, str) for name in _TEXTS}
    fields |= {name: _of(given, name, int) for name in _NUMBERS}
    persistent = _of(given, "persistent", bool)
    properties = Properties(
        **fields,
        headers=_of(given, "headers", dict),
        delivery_mode=1 if persistent is False else 2,
    )
    key = _of(given, "routing_key", str) or ""
    body = _body(given)
    if resource.kind == "q":
        return SinglePublish("", key, properties, body, resource.name)
    return SinglePublish(resource.name, key, properties, body)


def _of(given: Mapping[str, Any], name: str, kind: type) -> Any:
    found = given.get(name)
    is_wrong = not isinstance(found, kind) or (kind is int and isinstance(found, bool))
    if found is not None and is_wrong:
        raise Problem(400, f"{name} of publish must be a {kind.__name__}, not {str(found)[:80]!r}")
    return found


def _body(given: Mapping[str, Any]) -> bytes:
    text, encoded = _of(given, "body", str), _of(given, "body_base64", str)
    if text is not None and encoded is not None:
        raise Problem(400, "publish has both body and body_base64")
    if encoded is None:
        return (text or "").encode()
    try:
        return b64decode(encoded, validate=True)
    except ValueError as error:
        raise Problem(400, f"body_base64 is not base64: {error}") from error


def _answer(ref: Any, outcome: PublishOutcome | Exception) -> Answer:
    match outcome:
        case PublishOutcome.ROUTED:
            return {"confirmed": ref}
        case PublishOutcome.UNROUTED:
            return {"confirmed": ref, "routed": False}
        case PublishOutcome.NOT_DURABLE:
            return _refused(ref, low_on_disk())
        case PublishOutcome.REJECTED:
            return _refused(ref, refused_by_queue())
        case ValueError():
            return _refused(ref, Problem(400, str(outcome)))
        case _:
            assert isinstance(outcome, Exception)
            return _refused(ref, problem_of(outcome))


def _refused(ref: Any, problem: Problem) -> Answer:
    return {"refused": ref, "problem": problem.document()}
