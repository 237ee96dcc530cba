"""Which rooms of Warren may import which others: the tables that `test_layers.py` checks."""

from __future__ import annotations

# Which rooms each room imports when the program runs, the lowest first: nothing is imported from a
# line further down. The longest name that fits a module is its room. A name on the right stands for
# all that is below it; `core`, `hub` and `app` alone for the modules that no other line fits,
# `core.*` for the whole core. Each room may import itself. ARCHITECTURE.md has the picture.
RUNS = {
    # A new room has no line yet, so it may import nothing.
    "core": "",
    "hub": "",
    "core.errors": "",
    "core.clock": "",
    "core.histogram": "",
    "core.slices": "",
    "core.message.model": "",
    "core.timers": "",
    "core.commits": "",
    "core.consumer_timeouts": "",
    "core.counted": "",
    # The broker and its connections, as those see them that the broker is made of.
    "core.context": "",
    "core.statistics": "core.histogram core.slices",
    "core.busy_names": "core.errors",
    "core.resources.limits": "core.errors",
    "core.wire": "core.errors core.message.model",
    "core.message": "core.errors core.message.model core.wire.frames core.wire.method_ids "
    "core.wire.properties",
    "core.auth": "core.errors core.message.model core.resources.limits",
    "core.definitions.fields": "core.errors core.message.model core.wire.tables",
    "core.definitions.keys": "core.definitions.fields",
    "core.definitions.kinds": "core.definitions.fields core.definitions.keys core.message",
    "core.definitions.facts": "core.definitions.fields core.definitions.keys",
    "core.definitions.committed": "core.definitions.facts core.definitions.fields "
    "core.definitions.keys",
    "core.definitions.archives": "core.definitions.facts core.definitions.fields "
    "core.definitions.keys",
    "core.store": "core.clock core.counted core.errors core.histogram core.message core.slices "
    "core.wire.properties",
    # A queue is a destination and knows the exchanges that it is bound to; it routes nothing.
    "core.route": "core.errors core.message core.wire",
    "core.queue": "core.clock core.definitions.archives core.definitions.facts core.errors "
    "core.message core.route.route core.slices core.wire",
    "core.definitions": "core.auth core.clock core.errors core.queue core.route",
    "core.policy": "core.auth core.definitions.kinds core.errors core.message core.queue "
    "core.route",
    "core.parameters": "core.definitions core.errors",
    "core.publish.shares": "core.queue",
    "core.replay": "core.message core.publish.shares core.queue core.wire",
    "core.resources": "core.errors core.message core.queue.queue core.slices",
    "core.vhost": "core.busy_names core.definitions core.errors core.message core.policy "
    "core.queue core.replay core.resources.limits core.route core.slices",
    "core.vhosts": "core.errors core.message core.slices core.vhost",
    # What comes back at a start is put into force, so this stands above what it declares.
    "core.definitions.restore": "core.auth core.definitions core.errors core.policy.keys "
    "core.queue core.resources.limits core.route core.slices core.vhost",
    "core.publish": "core.auth core.errors core.message core.queue core.replay core.route "
    "core.slices core.vhost core.wire",
    "core.republish": "core.errors core.message core.publish core.queue core.slices core.vhost "
    "core.wire",
    "core.turn": "core.timers",
    "core.broker": "core.auth core.clock core.commits core.consumer_timeouts core.context "
    "core.definitions core.errors core.message core.parameters core.publish.shares core.queue "
    "core.republish core.resources core.route core.slices core.statistics core.store core.timers "
    "core.turn core.vhost",
    "core.local": "core.clock core.definitions.committed core.errors core.message core.publish "
    "core.queue core.replay.matcher core.slices core.wire",
    "core.proto": "core core.auth core.busy_names core.clock core.context core.errors "
    "core.message core.publish core.queue core.republish core.resources core.route.registry "
    "core.slices core.statistics core.vhost core.wire",
    "core.server": "core.auth core.broker core.errors core.histogram core.proto "
    "core.resources core.slices core.wire",
    "hub.connection_fields": "",
    "hub.errors": "core.errors",
    "hub.deadlines": "core.clock",
    "hub.keyed_locks": "",
    "hub.lazy": "",
    "hub.limited_log": "core.clock",
    "hub.requests": "",
    "hub.request_limiter": "",
    "hub.tasks": "core.errors",
    "hub.trace_context": "",
    "hub.transitions": "",
    "hub.processes": "",
    "hub.workers": "core.errors hub.keyed_locks hub.processes",
    # It runs in Spark's processes, never in the hub's: it knows the server's HTTP alone.
    "hub.pipeline": "core.errors core.wire",
    "hub.tunnels.settings": "",
    "hub.settings": "hub.tunnels.settings hub.workers.limits",
    "hub.guard": "hub.errors hub.lazy hub.requests hub.settings",
    "hub.topics.names": "",
    "hub.topics.document_key": "",
    "hub.attempts.kept_request": "",
    "hub.attempts.attempt": "hub.attempts.kept_request",
    "hub.delivery.breaker": "hub.transitions",
    "hub.delivery.failure_state": "hub.delivery.breaker",
    "hub.delivery.retry": "",
    "hub.delivery.signature": "hub.errors",
    "hub.delivery.envelope": "core.message.model",
    "hub.engine.errors": "core.errors hub.errors",
    "hub.engine.amqp.address": "",
    "hub.engine.values": "core.definitions.archives core.message.model",
    "hub.engine.logs": "core.message.model core.message.stream_read hub.engine.values",
    "hub.engine.port": "core.definitions.archives core.message.model core.message.stream_read "
    "hub.engine.logs hub.engine.values hub.requests",
    # What a subscription is; what is done with it comes further down.
    "hub.subscriptions.options": "hub.delivery.signature hub.errors",
    "hub.subscriptions.websub": "hub.engine.port hub.errors hub.guard hub.requests "
    "hub.topics.names hub.topics.document_key",
    "hub.subscriptions.subscription": "core.message.model hub.engine.port hub.requests "
    "hub.subscriptions.options hub.subscriptions.websub",
    "hub.subscriptions.anonymous": "hub.errors hub.guard.domains hub.requests "
    "hub.subscriptions.options hub.subscriptions.subscription",
    "hub.subscriptions.content_budget": "core.clock hub.subscriptions.anonymous "
    "hub.subscriptions.options",
    "hub.subscriptions.intent": "core.errors hub.delivery.signature hub.errors hub.requests "
    "hub.settings hub.subscriptions.options hub.subscriptions.subscription",
    "hub.subscriptions.delivery_state": "hub.engine.port hub.subscriptions.subscription "
    "hub.transitions",
    "hub.subscriptions.active": "hub.delivery.breaker hub.delivery.failure_state "
    "hub.subscriptions.delivery_state hub.subscriptions.subscription",
    # The core is behind the port: only its implementation knows more of it.
    "hub.engine": "core.auth core.broker core.clock core.definitions core.errors core.local "
    "core.message core.queue core.replay.matcher core.route.binding core.route.exchange "
    "core.vhost core.wire.properties hub.delivery.envelope hub.keyed_locks hub.requests "
    "hub.subscriptions.subscription hub.topics.names",
    # RabbitMQ is behind the port too: the broker here is the register of its users.
    "hub.engine.amqp": "core.auth core.broker core.errors core.message core.route "
    "core.vhosts core.wire "
    "hub.engine hub.keyed_locks hub.requests hub.subscriptions.subscription hub.tasks",
    "hub.owner_rights": "hub.requests hub.subscriptions.subscription hub.topics.names",
    "hub.keys": "core.clock core.errors hub.errors hub.guard.own hub.requests",
    "hub.sender": "core.errors hub.attempts.attempt hub.errors hub.guard hub.settings hub.tasks",
    "hub.spans": "core core.message.model hub.sender.port hub.trace_context",
    "hub.fetch": "core.errors hub.delivery.retry hub.errors hub.guard hub.request_limiter "
    "hub.sender hub.settings",
    "hub.relay": "hub.connection_fields hub.errors hub.guard hub.sender hub.settings",
    "hub.links": "hub.fetch.page hub.guard.callback_url",
    "hub.formats": "core.errors hub.links hub.workers.errors",
    "hub.storage": "core.errors hub.errors hub.keys.seal hub.lazy",
    "hub.peers": "core.errors hub.errors hub.keys.key_file hub.storage",
    "hub.capabilities": "core.clock core.errors hub.errors hub.owner_rights hub.requests "
    "hub.storage hub.tasks",
    "hub.tokens": "core.clock core.errors hub.errors hub.owner_rights hub.requests hub.storage "
    "hub.tasks",
    "hub.runs": "core.clock core.errors hub.errors hub.keyed_locks hub.owner_rights hub.storage "
    "hub.tasks",
    "hub.tunnels": "core.clock core.errors hub.connection_fields hub.deadlines hub.errors "
    "hub.keyed_locks hub.owner_rights hub.sender hub.settings hub.storage hub.tasks",
    "hub.attempts": "core.clock core.errors hub.engine.errors hub.engine.own hub.engine.port "
    "hub.keys.seal hub.lazy hub.limited_log hub.settings hub.storage hub.subscriptions.active "
    "hub.subscriptions.subscription hub.tasks",
    "hub.audit": "core.clock core.errors hub.lazy hub.settings hub.storage hub.tasks",
    "hub.verification": "core.clock core.errors hub.errors hub.guard hub.keyed_locks hub.keys.seal "
    "hub.lazy hub.request_limiter hub.requests hub.sender hub.settings hub.storage "
    "hub.subscriptions.intent hub.subscriptions.subscription hub.subscriptions.websub hub.tasks",
    "hub.topics": "core.clock core.errors hub.deadlines hub.engine.own hub.engine.port hub.errors "
    "hub.fetch hub.formats hub.guard hub.lazy hub.links hub.settings hub.storage "
    "hub.subscriptions.content_budget hub.subscriptions.websub hub.tasks hub.workers",
    "hub.delivery": "core.clock core.counted core.errors core.histogram core.message.model "
    "hub.attempts hub.engine.own hub.engine.port hub.errors hub.guard.own hub.keys.key_file "
    "hub.lazy hub.limited_log hub.owner_rights hub.requests hub.sender.port hub.settings "
    "hub.storage hub.subscriptions.active hub.subscriptions.content_budget "
    "hub.subscriptions.delivery_state hub.subscriptions.intent hub.subscriptions.subscription "
    "hub.tasks hub.trace_context",
    "hub.subscriptions": "core.clock core.errors hub.deadlines hub.engine.port hub.errors "
    "hub.guard hub.keyed_locks hub.keys hub.owner_rights hub.request_limiter hub.requests "
    "hub.settings hub.storage hub.tasks hub.topics hub.verification",
    "hub.deadletter": "core.errors core.message.model hub.delivery hub.engine.own "
    "hub.engine.port hub.errors hub.subscriptions.active hub.subscriptions.subscription",
    "hub.resend": "hub.attempts hub.deadletter hub.delivery hub.engine.own hub.engine.port "
    "hub.errors hub.subscriptions.active hub.subscriptions.store hub.tasks",
    "hub.upstream": "core.clock core.errors hub.capabilities hub.delivery.signature hub.errors "
    "hub.fetch hub.guard hub.keys.seal hub.lazy hub.links hub.owner_rights hub.request_limiter "
    "hub.requests hub.sender.port hub.settings hub.storage hub.tasks hub.workers.pool",
    "hub.client_factories": "hub.fetch hub.guard hub.relay hub.sender hub.settings "
    "hub.verification",
    "hub.feeds": "core.auth.reserved core.clock core.counted core.errors core.message.model "
    "core.wire.properties hub.client_factories hub.deadlines hub.engine.errors hub.engine.own "
    "hub.engine.port "
    "hub.errors hub.fetch hub.formats hub.guard hub.keyed_locks hub.lazy hub.links "
    "hub.owner_rights hub.requests hub.sender hub.settings hub.storage hub.tasks hub.upstream "
    "hub.workers.pool",
    "hub.live": "core.errors core.message.model core.wire.websocket hub.engine.port hub.errors "
    "hub.keyed_locks hub.requests hub.tasks",
    "hub.streams": "hub.engine.port hub.errors hub.keyed_locks hub.pipeline "
    "hub.processes hub.requests",
    "hub.transactions": "core.auth core.clock core.message.model core.store.disk hub.engine.port "
    "hub.errors hub.keyed_locks",
    "hub.outputs": "core.clock core.errors core.message.model hub.engine.own hub.engine.port "
    "hub.errors hub.feeds hub.formats hub.keyed_locks hub.lazy hub.owner_rights hub.requests "
    "hub.storage hub.subscriptions hub.tasks hub.topics hub.workers.pool",
    # It takes its batches as outputs do.
    "hub.results": "core.errors core.message.model hub.engine hub.outputs hub.requests hub.storage "
    "hub.tasks",
    "hub.service": "core.clock core.errors hub.*",
    # A program of its own: it knows nothing of the hub that it checks.
    "app.conformance": "core.errors hub.links.header hub.links.safe_xml",
    "app.documents": "",
    "app.totals": "core.broker core.vhost",
    "app.problems": "core.auth core.errors core.policy.keys hub.engine.errors hub.errors",
    "app.suggestions": "",
    "app.configuration": "app.suggestions core.auth core.context core.errors core.resources "
    "core.server hub.engine.amqp.address hub.guard hub.settings hub.storage hub.tunnels",
    "app.logs": "app.configuration.types hub.trace_context",
    "app.node": "app.logs.tail app.totals",
    "app.requests": "app.problems app.suggestions core.message.model core.resources hub.delivery "
    "hub.requests hub.trace_context hub.upstream",
    "app.access": "app.problems app.requests core.auth core.errors core.server core.vhost "
    "hub.engine.port hub.requests hub.tokens",
    "app.http": "app.access app.configuration app.logs app.problems app.requests core.errors "
    "core.resources core.server core.wire hub.audit.documents",
    "app.responses": "app.problems app.requests core.errors hub.engine.port hub.requests",
    "app.manual": "app.responses.error_pages",
    "app.overview": "core.auth.reserved core.broker core.clock core.counted core.errors core.queue "
    "core.resources core.server.loop_monitor "
    "core.statistics core.vhost hub.attempts.attempt hub.delivery.breaker hub.delivery.envelope "
    "hub.engine hub.feeds hub.service hub.subscriptions.active hub.subscriptions.delivery_state "
    "hub.subscriptions.store hub.subscriptions.subscription",
    # What the rooms below need and owns no room; it knows no route.
    "app": "app.access app.configuration app.documents app.http app.node app.overview app.problems "
    "app.requests core core.auth core.broker core.clock core.errors core.resources core.server "
    "core.store hub.engine.port hub.service hub.storage",
    "app.metrics": "app.node core core.broker core.histogram core.proto core.queue core.route "
    "core.server.loop_monitor core.statistics core.vhost hub.delivery.breaker "
    "hub.delivery.envelope hub.engine hub.feeds hub.requests hub.runs hub.service hub.streams "
    "hub.subscriptions.delivery_state",
    "app.definitions": "app.data_directory core.auth core.broker core.counted core.definitions "
    "core.errors core.message core.parameters core.policy.keys core.policy.policies "
    "core.proto.server_properties core.queue "
    "core.resources.limits core.route.registry core.store core.vhost core.vhosts hub.engine.own "
    "hub.engine.port",
    # A client of any broker: it knows nothing of Warren.
    "app.bench": "core.errors",
    # For programs of others: it knows the command line of the server alone.
    "app.testing": "",
    # Programs that use a server from outside, or its data directory while it is stopped.
    "app.commands": "app.configuration app.data_directory app.definitions app.requests "
    "app.suggestions "
    "app.bench app.testing core core.auth core.broker core.counted core.definitions core.errors "
    "core.local.reader core.message core.store core.wire.websocket hub.pipeline",
    "app.subscriptions": "app.access app.context app.problems app.requests app.responses "
    "core.auth hub.delivery.breaker hub.delivery.failure_state hub.errors hub.outputs "
    "hub.requests hub.settings hub.subscriptions.active hub.subscriptions.intent "
    "hub.subscriptions.options hub.subscriptions.subscription hub.subscriptions.websub "
    "hub.topics.names",
    "app.tunnels": "app.access app.context app.http app.logs app.problems app.requests "
    "app.responses core.auth core.resources core.wire hub.errors hub.tunnels",
    "app.peers": "app.access app.configuration app.http app.logs app.problems app.requests "
    "app.responses core.errors hub.connection_fields hub.errors hub.keys.key_file hub.peers "
    "hub.storage",
    "app.live": "app.access app.context app.http app.problems app.requests core.auth core.broker "
    "core.errors core.message.model core.wire hub.engine.port hub.live hub.requests",
    "app.routes": "app app.access app.http app.live app.manual app.metrics app.problems "
    "app.requests app.responses app.subscriptions app.suggestions app.tunnels core.auth "
    "core.counted core.errors core.message.model core.resources core.vhost hub.capabilities "
    "hub.delivery.signature hub.engine.port hub.errors hub.feeds hub.formats hub.guard hub.live "
    "hub.outputs hub.requests hub.service hub.streams hub.subscriptions.active "
    "hub.subscriptions.options hub.subscriptions.websub hub.topics.names hub.topics.document_key "
    "hub.transactions hub.tunnels hub.upstream hub.workers",
    "app.routes.api": "app app.access app.definitions app.documents app.logs app.node "
    "app.overview app.problems app.requests app.responses app.routes.endpoint "
    "app.routes.subscriptions app.subscriptions "
    "app.suggestions app.totals app.tunnels core core.auth core.broker core.clock core.counted "
    "core.definitions.kinds core.errors core.histogram core.local core.message.model "
    "core.parameters core.policy core.proto core.queue core.route core.server.machine "
    "core.statistics core.vhost core.vhosts hub.attempts.attempt hub.attempts.kept_request "
    "hub.audit hub.capabilities hub.deadletter hub.engine hub.errors hub.feeds hub.outputs "
    "hub.requests hub.resend hub.results hub.runs hub.streams hub.subscriptions hub.tokens "
    "hub.topics hub.upstream",
    # What puts the program together.
    "app.route_table": "app app.requests app.responses app.routes hub.engine.errors "
    "hub.topics.document_key "
    "hub.upstream.upstream",
    "app.metrics_application": "app.access app.context app.problems app.responses "
    "app.routes.metrics",
    "app.asgi": "app app.access app.http app.problems app.requests app.responses app.route_table "
    "app.routes app.tunnels",
    "app.engine": "app.commands.exit_codes core.broker core.errors hub.engine.amqp "
    "hub.engine.errors",
    "app.openapi_answers": "app.documents app.requests app.routes.api app.routes.stream "
    "app.routes.streams hub.formats.media_types hub.upstream.upstream",
    "app.openapi_requests": "app.documents app.overview.trouble app.requests app.responses "
    "app.routes.api app.routes.metrics app.subscriptions core.resources.limits core.route.registry "
    "hub.attempts.attempt hub.feeds hub.outputs hub.results.row hub.transactions.rows "
    "hub.upstream.upstream",
    "app.openapi": "app app.access app.documents app.openapi_answers app.openapi_requests "
    "app.requests app.responses app.routes.api app.routes.feeds app.routes.metrics "
    "app.routes.streams hub.upstream.upstream",
    "app.telemetry": "core core.errors hub.spans",
    "app.startup": "app.access app.configuration app.exposure app.http core.server.certificates "
    "hub.service",
    "app.opening": "app app.access app.configuration app.engine app.node app.startup core.* hub.*",
    "app.assembly": "app.access app.configuration app.opening app.routes.publish app.startup "
    "core.server hub.peers hub.processes hub.service",
    "app.serving": "app app.access app.asgi app.assembly app.http app.logs "
    "app.metrics_application app.node app.overview app.peers app.startup app.tunnels core.server "
    "hub.peers",
    "app.lifespan": "app.access app.assembly app.commands.exit_codes app.configuration app.engine "
    "app.logs app.opening app.overview app.peers app.serving app.startup app.telemetry core.* "
    "hub.*",
    "app.main": "app app.configuration app.http app.lifespan app.logs app.startup hub.processes",
    "app.cli": "app.commands app.configuration app.conformance app.main core.counted core.errors "
    "hub.pipeline",
    "app.package": "app.cli app.testing core",
}
ORDER = {room: place for place, room in enumerate(RUNS)}
# Imports that one module alone needs, also against that order.
ALONE = {
    "core.wire.deliver": "core.message",
    "hub.subscriptions.attach": "hub.delivery.relay",
    "hub.storage.storage": "hub.subscriptions.repository",
    "app.subscriptions.importing": "app.routes",
    "app.routes.metrics": "app.routes.api.required_tags",
    "app.routes.plain": "app.openapi",
    "app.routes.subscriptions": "app.routes.api.required_tags",
}
# What annotations name beyond that (`if TYPE_CHECKING`), which no order needs.
NAMES = {
    "hub.topics.document_key": "hub.formats.media_types",
    "core.auth.authorization": "core.vhost",
    "core.definitions": "core.context core.message.model core.parameters core.store.port",
    "core.policy": "core.vhost",
    "core.statistics": "core.clock core.timers",
    "core.consumer_timeouts": "core.context",
    "core.slices": "core.clock",
    "core.context": "core.auth core.clock core.commits core.definitions core.message "
    "core.publish.shares core.queue.queue core.resources.alarms core.route.exchange core.slices "
    "core.statistics core.store.port core.timers",
    "core.proto": "core.broker core.store.port",
    "core.local": "core.auth core.broker core.store.port core.vhost",
    "core.publish": "core.context core.statistics.counters",
    "core.commits": "core.store.port",
    "core.queue": "core.commits core.route.exchange core.statistics.counters core.store.port "
    "core.timers",
    "core.queue.default_type": "core.vhost",
    "core.route": "core.queue.deduplication core.statistics.counters",
    "core.replay": "core.commits core.resources.alarms core.route core.store.port",
    "core.republish": "core.clock core.context core.route core.store.port",
    "core.resources": "core.auth core.broker core.context core.message.model core.proto.connection "
    "core.vhost",
    "core.vhost": "core.context",
    "core.turn": "core.context core.republish.republisher core.resources.pager",
    "core.vhosts": "core.broker",
    "hub.engine.logs": "core.auth core.definitions.committed",
    "hub.engine.port": "core.auth",
    "hub.attempts.attempt": "hub.subscriptions.subscription",
    "hub.delivery.dispatcher": "hub.spans",
    "hub.links": "hub.workers.pool",
    "hub.formats": "hub.workers.pool",
    "hub.subscriptions": "hub.delivery.rate_limits hub.delivery.request",
    "app.routes.publish": "hub.spans",
    "app.main": "core.server.certificates",
    "app.assembly": "hub.spans",
}
