"""The hub's share of the load: webhooks, subscriptions that come and go, topics of others."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from urllib.parse import urlencode

from tests.crash.http import Answered, Http
from tests.crash.site import Site

from .churn import Churn
from .target import LISTENER, NEWS, PASSING, SIGNED, TOPIC, Target

EXCHANGE = "soak.news"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
TOPICS = ("one", "two", "three")
SECRET = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
TOPIC_REST_S = 0.2
POLL_S = 0.05
LISTENER_POLL_S = 0.5
STUCK_S = 90.0
"""A retry comes after seconds, the one behind it after half a minute."""


class HubChurn(Churn):
    """A worker that talks to the hub over one connection."""

    def __init__(self, site: Site, target: Target, seed: int) -> None:
        super().__init__(site, type(self).__name__.lower(), seed)
        self.target = target
        self._http: Http | None = None

    def session(self) -> None:
        assert self.site.http is not None
        with Http(self.site.http) as self._http:
            super().session()

    def send(self, method: str, path: str, fields: Mapping[str, str], *wanted: int) -> Answered:
        """A form; a status that is not wanted is a fault."""
        assert self._http is not None
        body = urlencode({f"hub.{name}": value for name, value in fields.items()}).encode()
        return self._checked(self._http.request(method, path, body, FORM), path, wanted)

    def _checked(self, answered: Answered, path: str, wanted: tuple[int, ...]) -> Answered:
        if answered.status not in wanted and self.alive:
            self.fault(f"{path} was answered {answered.status}: {answered.body[:200]!r}")
        return answered

    def publish(self, number: int) -> bool:
        assert self._http is not None
        path = f"/endpoint/x/{EXCHANGE}?hub.topic=news"
        answered = self._http.request("POST", path, b"%d" % number, {"Content-Type": "text/plain"})
        return self._checked(answered, path, (202,)).status == 202


class Webhooks(HubChurn):
    """Publishes to two callbacks; both have to get all that was accepted."""

    def __init__(self, site: Site, target: Target, seed: int) -> None:
        super().__init__(site, target, seed)
        self.owed: set[int] = set()
        """Accepted, and not yet seen at both."""

    def once(self) -> None:
        if self.publish(self.rounds):
            self.owed.add(self.rounds)

    def owing(self) -> bool:
        """Forgets what has come to both."""
        self.owed -= {
            number for number in list(self.owed)
            if all(self.target.has(path, number) for path in (NEWS, SIGNED))
        }  # fmt: skip
        return bool(self.owed)


class Passing(HubChurn):
    """Subscribes callbacks, some with a binding of their own, and lets them go again."""

    def once(self) -> None:
        callback = f"{self.target.origin}{PASSING}{self.rounds}"
        topic = self.random.choice(("nothing", f"nothing.{self.rounds}"))
        fields = {"callback": callback, "topic": topic, "lease_seconds": "3600"}
        path = f"/subscribe/x/{EXCHANGE}"
        self.send("POST", path, {"mode": "subscribe", **fields}, 204)
        self.send("POST", path, {"mode": "unsubscribe", **fields}, 204)


class Topics(HubChurn):
    """Changes documents that the hub does not own, and says so; a listener has to get the last."""

    def __init__(self, site: Site, target: Target, seed: int) -> None:
        super().__init__(site, target, seed)
        self.announced: Counter[str] = Counter()
        """The newest version of each that the hub has accepted a ping for."""

    def once(self) -> None:
        name = self.random.choice(TOPICS)
        self.target.documents[name] += 1
        version = self.target.documents[name]
        fields = {"mode": "publish", "url": f"{self.target.origin}{TOPIC}{name}"}
        if self.send("POST", "/hub", fields, 204).status == 204:
            self.announced[name] = version
        self.stopping.wait(TOPIC_REST_S)

    def owing(self) -> list[str]:
        """Topics whose newest version has not come."""
        return [name for name in TOPICS if self.target.received[name] < self.announced[name]]


class HubLoad:
    """All of it, on a server that runs; who is there all the time subscribes before the start."""

    def __init__(self, site: Site, target: Target, seed: int) -> None:
        self._site = site
        self._target = target
        self.webhooks = Webhooks(site, target, seed)
        self.topics = Topics(site, target, seed)
        self.workers = [self.webhooks, self.topics, Passing(site, target, seed)]

    def subscribe(self) -> None:
        """Returns when all is verified. Raises `RuntimeError` when something is refused."""
        assert self._site.http is not None
        with Http(self._site.http) as http:
            kind = urlencode({"amqp.exchange_type": "topic", "durable": "true"})
            _demand(http.request("PUT", f"/endpoint/x/{EXCHANGE}?{kind}"), 201)
            for path, more in ((NEWS, {}), (SIGNED, {"secret": SECRET, "order": "strict"})):
                fields = {"callback": self._target.origin + path, "topic": "news", **more}
                _subscribe(http, f"/subscribe/x/{EXCHANGE}", fields, 204)
            for name in TOPICS:
                topic = f"{self._target.origin}{TOPIC}{name}"
                callback = f"{self._target.origin}{LISTENER}{name}"
                _subscribe(http, "/hub", {"callback": callback, "topic": topic}, 202)
            self._await_listeners(http)

    def _await_listeners(self, http: Http) -> None:
        """Changes the topics until each was received: before they are verified, none is."""
        limit = time.monotonic() + STUCK_S
        while any(not self._target.received[name] for name in TOPICS):
            if time.monotonic() > limit:
                raise RuntimeError("the subscriptions to topics were never served")
            for name in TOPICS:
                fields = {"hub.mode": "publish", "hub.url": f"{self._target.origin}{TOPIC}{name}"}
                self._target.documents[name] += 1
                _demand(http.request("POST", "/hub", urlencode(fields).encode(), FORM), 204)
            time.sleep(LISTENER_POLL_S)

    def drain(self) -> bool:
        """Waits until nothing is owed; False, and a fault, when it never comes."""
        limit = time.monotonic() + STUCK_S
        while self.webhooks.owing() or self.topics.owing():
            if time.monotonic() > limit:
                self._report()
                return False
            time.sleep(POLL_S)
        for arrived in self._target.arrived.values():
            arrived.clear()
        return True

    def _report(self) -> None:
        breaks = self._site.checker.breaks
        for number in sorted(self.webhooks.owed):
            breaks("lost", f"message {number} to {EXCHANGE} did not come to its callbacks")
        for name in self.topics.owing():
            versions = self.topics.announced[name], self._target.received[name]
            breaks("lost", f"version {versions[0]} of topic {name}, after {versions[1]}")


def _subscribe(http: Http, path: str, fields: Mapping[str, str], wanted: int) -> None:
    given = {f"hub.{name}": value for name, value in {"mode": "subscribe", **fields}.items()}
    _demand(http.request("POST", path, urlencode(given).encode(), FORM), wanted)


def _demand(answered: Answered, wanted: int) -> None:
    if answered.status != wanted:
        raise RuntimeError(f"answered {answered.status}: {answered.body[:200]!r}")
