"""100-106: the checks of the public test suite websub.rocks, with its numbers."""

from __future__ import annotations

from ..check_context import CheckContext, new_secret
from ..expect import check_signature
from ..registry import check
from ..results import Failed, Level

JSON = "application/json"
PLAIN = "text/plain; charset=utf-8"


@check(100, "Typical subscription", Level.MUST, "rules 1, 9, 14, 17-19; WebSub 5, 7")
async def typical(context: CheckContext) -> None:
    """Subscribes with mode, topic and callback alone, so that nothing is signed."""
    topic, callback = context.topic(), context.callback()
    await context.subscribe(callback, topic)
    await context.publish(topic)
    await context.delivery(callback, topic)


@check(101, "Subscription with a secret", Level.MUST, "rule 23; WebSub 7.1")
async def secret(context: CheckContext) -> str:
    topic, callback, secret = context.topic(), context.callback(), new_secret()
    await context.subscribe(callback, topic, ("hub.secret", secret))
    await context.publish(topic)
    return (
        f"signs with {check_signature(await context.delivery(callback, topic, 1, secret), secret)}"
    )


@check(102, "Additional parameters are ignored", Level.MUST, "rule 3; WebSub 5.1.1")
async def additional_parameters(context: CheckContext) -> None:
    topic, callback = context.topic(), context.callback()
    await context.subscribe(callback, topic, ("foo", "bar"), ("hub.foo", "bar"))
    await context.publish(topic)
    await context.delivery(callback, topic)


@check(103, "Subscribing again replaces the subscription", Level.MUST, "rule 4; WebSub 5.1")
async def again(context: CheckContext) -> None:
    """Checks that an update is delivered once."""
    topic, callback = context.topic(), context.callback()
    await context.subscribe(callback, topic)
    await context.subscribe(callback, topic)
    await context.publish(topic)
    await context.delivery(callback, topic)
    await context.nothing_more(
        callback, 1, "one update was delivered twice to a callback that had subscribed twice"
    )


@check(104, "Unsubscribing ends the subscription", Level.MUST, "rule 5; WebSub 5.1")
async def unsubscribe(context: CheckContext) -> None:
    topic, callback = context.topic(), context.callback()
    witness = await context.witness(topic)
    await context.subscribe(callback, topic)
    await context.unsubscribe(callback, topic)
    await context.publish(topic)
    await context.delivery(witness, topic)
    await context.nothing_more(
        callback, 0, "an update was delivered after the subscription had ended"
    )


@check(105, "Plain text arrives as it is", Level.MUST, "rules 17, 18; WebSub 7")
async def plain_text(context: CheckContext) -> None:
    await _arrives(context, PLAIN, "Gr\u00fc\u00dfe, \u4f60\u597d\r\n  <b>&amp;\r\n".encode())


@check(106, "JSON arrives as it is", Level.MUST, "rules 17, 18; WebSub 7")
async def json_text(context: CheckContext) -> None:
    """Publishes JSON, whose spaces, order and repeated names have to stay as they are."""
    await _arrives(context, JSON, b'{"b": [1, 2.50],  "a": "\\u00fc",\n "b": null }\n')


async def _arrives(context: CheckContext, content_type: str, body: bytes) -> None:
    topic, callback = context.topic(content_type, b"before"), context.callback()
    await context.subscribe(callback, topic)
    await context.publish(topic, body)
    await context.delivery(callback, topic)


@check(107, "The answer to a subscription request is 202", Level.MUST, "rule 9; WebSub 5.1.2")
async def accepted(context: CheckContext) -> None:
    topic, callback = context.topic(), context.callback()
    for count, mode in enumerate(("subscribe", "unsubscribe"), 1):
        reply = await context.ask(mode, callback, topic.url)
        if reply.status != 202:
            raise Failed(f"a correct {mode} request was answered with {reply}, not with 202")
        await context.verification(callback, mode, count)
        await context.settle()
