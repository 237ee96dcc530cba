"""Which rooms of Warren may import which others: the tables that `test_layers.py` checks."""

from __future__ import annotations

# Which rooms each room imports when the program runs, the lowest first: nothing is imported from a
# line further down. The longest name that fits a module is its room; a name on the right stands for
# all that is below it. Each room may import itself. ARCHITECTURE.md has the picture.
RUNS = {
    # A new room has no line yet, so it may import nothing.
    "core": "",
    "hub": "",
    "core.errors": "",
    "core.clock": "",
    "core.slices": "",
    "core.message.model": "",
    "core.timers": "",
    "core.busy_names": "core.errors",
    "core.resources.limits": "core.errors",
    "core.wire": "core.errors core.message.model",
    "core.message": "core.errors core.message.model core.wire.properties",
    "core.auth": "core.errors core.message.model core.resources.limits",
    "core.definitions.fields": "core.errors core.message.model core.wire.tables",
    "core.definitions.keys": "core.definitions.fields",
    "core.definitions.kinds": "core.definitions.fields core.definitions.keys core.message",
    "core.definitions.facts": "core.definitions.fields core.definitions.keys "
    "core.definitions.kinds",
    "core.store": "core.clock core.errors core.message core.slices core.wire.properties",
    # A queue is a destination and knows the exchanges that it is bound to; it routes nothing.
    "core.route": "core.errors core.message core.wire",
    "core.queue": "core.clock core.definitions.facts core.errors core.message core.route.route "
    "core.slices core.wire",
    "core.definitions": "core.auth core.clock core.errors core.queue core.route",
    "core.policy": "core.auth core.definitions.kinds core.errors core.message core.queue "
    "core.route",
    "core.replay": "core.message core.queue core.wire",
    "core.resources": "core.message.batch core.queue.queue core.slices",
    "core.vhost": "core.busy_names core.definitions core.errors core.message core.policy "
    "core.queue core.replay core.resources.limits core.route core.slices",
    "core.vhosts": "core.errors core.message core.slices core.vhost",
    # What comes back at a start is put into force, so this stands above what it declares.
    "core.definitions.restore": "core.auth core.definitions core.errors core.policy.keys "
    "core.queue core.resources.limits core.route core.slices core.vhost",
    "core.publish": "core.auth core.errors core.message core.queue core.replay core.route "
    "core.vhost core.wire",
    "core.republish": "core.errors core.message core.publish core.queue core.slices core.vhost "
    "core.wire",
    "core.proto": "core.auth core.busy_names core.errors core.message core.publish core.queue "
    "core.republish core.resources core.route.registry core.slices core.vhost core.wire",
    "core.broker": "core.auth core.clock core.definitions core.errors "
    "core.message.batch core.proto.consumer_timeout core.queue core.republish core.resources "
    "core.route core.slices core.store core.timers core.vhost",
    "core.server": "core.auth core.broker core.errors core.proto core.resources core.slices "
    "core.wire",
    "hub.errors": "core.errors",
    "hub.deadlines": "core.clock",
    "hub.lazy": "",
    "hub.limited_log": "core.clock",
    "hub.requests": "",
    "hub.request_limiter": "",
    "hub.tasks": "core.errors",
    "hub.workers": "core.errors",
    "hub.settings": "hub.workers.limits",
    "hub.guard": "hub.errors hub.lazy hub.requests hub.settings",
    "hub.topics.names": "",
    "hub.attempts.attempt": "",
    "hub.delivery.breaker": "",
    "hub.delivery.failure_state": "hub.delivery.breaker",
    "hub.delivery.retry": "",
    "hub.delivery.signature": "hub.errors",
    "hub.delivery.envelope": "core.message.model",
    "hub.engine.port": "core.message.model hub.requests",
    # What a subscription is; what is done with it comes further down.
    "hub.subscriptions.options": "hub.delivery.signature hub.errors",
    "hub.subscriptions.websub": "hub.engine.port hub.errors hub.guard hub.requests "
    "hub.topics.names",
    "hub.subscriptions.subscription": "core.message.model hub.engine.port hub.requests "
    "hub.subscriptions.options hub.subscriptions.websub",
    "hub.subscriptions.anonymous": "hub.errors hub.guard.domains hub.requests "
    "hub.subscriptions.options hub.subscriptions.subscription",
    "hub.subscriptions.content_budget": "core.clock hub.subscriptions.anonymous "
    "hub.subscriptions.options",
    "hub.subscriptions.intent": "core.errors hub.delivery.signature hub.errors hub.requests "
    "hub.settings hub.subscriptions.options",
    "hub.subscriptions.active": "hub.delivery.breaker hub.delivery.failure_state hub.engine.port "
    "hub.subscriptions.subscription",
    # The core is behind the port: only its implementation knows more of it.
    "hub.engine": "core.auth core.broker core.definitions.kinds core.errors core.message "
    "core.publish core.queue.queue core.route.exchange core.vhost core.wire.properties "
    "hub.delivery.envelope hub.requests hub.subscriptions.subscription hub.topics.names",
    "hub.owner_rights": "hub.requests hub.subscriptions.subscription hub.topics.names",
    "hub.keys": "core.clock core.errors hub.errors hub.guard.own hub.requests",
    "hub.sender": "core.errors hub.attempts.attempt hub.errors hub.guard hub.settings hub.tasks",
    "hub.fetch": "core.errors hub.errors hub.guard hub.request_limiter hub.sender hub.settings",
    "hub.links": "hub.fetch.page hub.guard.guard",
    "hub.storage": "core.errors hub.errors hub.keys.seal hub.lazy",
    "hub.capabilities": "core.clock core.errors hub.errors hub.owner_rights hub.requests "
    "hub.storage hub.tasks",
    "hub.attempts": "core.clock core.errors hub.keys.seal hub.lazy hub.settings hub.storage "
    "hub.subscriptions.active hub.tasks",
    "hub.verification": "core.clock core.errors hub.errors hub.guard hub.keys.seal hub.lazy "
    "hub.request_limiter hub.requests hub.sender hub.settings hub.storage "
    "hub.subscriptions.intent hub.subscriptions.subscription hub.tasks",
    "hub.topics": "core.clock core.errors hub.deadlines hub.delivery.retry hub.engine.own "
    "hub.engine.port hub.errors hub.fetch hub.guard hub.lazy hub.links hub.settings hub.storage "
    "hub.subscriptions.content_budget hub.subscriptions.websub hub.tasks hub.workers.pool",
    "hub.delivery": "core.clock core.errors core.message.model hub.attempts hub.engine.own "
    "hub.engine.port hub.errors hub.guard.own hub.keys.key_file hub.lazy hub.limited_log "
    "hub.owner_rights hub.requests hub.sender.port hub.settings hub.storage "
    "hub.subscriptions.active hub.subscriptions.content_budget hub.subscriptions.intent "
    "hub.subscriptions.subscription hub.tasks",
    "hub.subscriptions": "core.clock core.errors hub.deadlines hub.engine.port hub.errors "
    "hub.guard hub.keys hub.owner_rights hub.request_limiter hub.requests hub.settings "
    "hub.storage hub.tasks hub.topics hub.verification",
    "hub.deadletter": "core.errors core.message.model hub.delivery hub.engine.own "
    "hub.engine.port hub.errors hub.subscriptions.active hub.subscriptions.subscription",
    "hub.upstream": "core.clock core.errors hub.capabilities hub.delivery.signature hub.errors "
    "hub.fetch hub.guard hub.keys.seal hub.lazy hub.links hub.owner_rights hub.request_limiter "
    "hub.requests hub.sender.port hub.settings hub.storage hub.tasks hub.workers.pool",
    "hub.client_factories": "hub.fetch hub.guard hub.sender hub.settings hub.verification",
    "hub.service": "core.clock core.errors hub",
    # A program of its own: it knows nothing of the hub that it checks.
    "app.conformance": "core.errors hub.links.header hub.links.safe_xml",
    "app.problems": "core.auth core.errors hub.errors",
    # What reads settings and requests and makes answers; it knows no route.
    "app": "core.auth core.broker core.clock core.definitions core.errors core.message "
    "core.publish.local core.resources core.server core.store core.vhost core.wire.proxy hub",
    "app.definitions": "app.data_directory core.auth core.broker core.definitions core.errors "
    "core.message core.proto.handshake core.queue.registry core.store core.vhost hub.engine.own",
    "app.routes": "app core.auth core.errors core.message.model core.resources hub",
    "app.routes.api": "app app.definitions.values app.routes.endpoint app.routes.subscriptions "
    "core.auth core.broker core.definitions.kinds core.errors core.message.model core.policy "
    "core.vhost core.vhosts hub",
    # What puts the program together.
    "app.asgi": "app app.routes app.routes.api hub.upstream.upstream",
    "app.openapi_answers": "app.documents app.facets app.paths app.routes.api "
    "app.subscription_filter hub.upstream.upstream",
    "app.openapi": "app app.openapi_answers app.routes.api hub.upstream.upstream",
    "app.lifespan": "app app.asgi app.routes.publish core hub",
    "app.main": "app app.lifespan",
    "app.cli": "app app.conformance app.definitions app.main core.errors",
    "app.package": "core app.cli",
}
ORDER = {room: place for place, room in enumerate(RUNS)}
# Imports that one module alone needs, also against that order.
ALONE = {
    "core.wire.deliver": "core.message.batch",
    "core.publish.local": "core.proto.basic_methods",
    "core.republish.copies": "core.proto.publish_scanner",
    "hub.subscriptions.attach": "hub.delivery.relay",
    "hub.storage.storage": "hub.subscriptions.repository",
    "app.repair": "app.definitions",
    "app.subscription_import": "app.routes",
    "app.routes.plain": "app.openapi",
    "app.routes.subscriptions": "app.routes.api.required_tags",
}
# What annotations name beyond that (`if TYPE_CHECKING`), which no order needs.
NAMES = {
    "core.auth.authorization": "core.vhost",
    "core.definitions": "core.broker core.message.model core.store.port",
    "core.policy": "core.vhost",
    "core.broker": "core.proto.connection",
    "core.proto": "core.broker core.store.port",
    "core.publish": "core.broker core.proto.channel core.proto.transaction",
    "core.queue": "core.route.exchange core.store.port core.timers",
    "core.queue.default_type": "core.vhost",
    "core.replay": "core.broker core.resources.alarms core.route core.store.port",
    "core.republish": "core.broker core.route core.store.port",
    "core.resources": "core.auth core.broker core.message.model core.proto.connection core.vhost",
    "core.vhost": "core.broker",
    "core.vhosts": "core.broker",
    "hub.links": "hub.workers.pool",
    "hub.subscriptions": "hub.delivery.rate_limits hub.delivery.request",
    "app": "core.server.certificates",
}
