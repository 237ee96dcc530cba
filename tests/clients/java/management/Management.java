import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.ShutdownSignalException;
import com.rabbitmq.http.client.Client;
import com.rabbitmq.http.client.GetAckMode;
import com.rabbitmq.http.client.GetEncoding;
import com.rabbitmq.http.client.HttpClientException;
import com.rabbitmq.http.client.domain.*;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;

/** What applications do with RabbitMQ's HTTP client; each check prints its name and how it went. */
public class Management {
    interface Check {
        void run() throws Exception;
    }

    static final long WAIT_S = 30;
    /** With a slash, so that every path has to be decoded. */
    static final String VHOST = "team/j";

    static Client api;
    static String url;
    static Connection connection;
    static Channel channel;

    public static void main(String[] arguments) throws Exception {
        url = arguments[0].replace("http://", "http://%s@") + "/api/";
        api = client("guest", "guest");
        api.createVhost(VHOST, "first", "a", "b");
        ConnectionFactory factory = new ConnectionFactory();
        factory.setUri(arguments[1]);
        factory.setVirtualHost(VHOST);
        factory.setAutomaticRecoveryEnabled(false);
        connection = factory.newConnection("checks");
        channel = connection.createChannel();
        Map<String, Check> checks = new LinkedHashMap<>();
        checks.put("overview and nodes", Management::overview);
        checks.put("virtual hosts", Management::virtualHosts);
        checks.put("limits", Management::limits);
        checks.put("users", Management::users);
        checks.put("permissions", Management::permissions);
        checks.put("exchanges", Management::exchanges);
        checks.put("queues", Management::queues);
        checks.put("bindings", Management::bindings);
        checks.put("policies", Management::policies);
        checks.put("shovels", Management::shovels);
        checks.put("upstreams", Management::upstreams);
        checks.put("definitions", Management::definitions);
        checks.put("messages and figures", Management::messages);
        checks.put("pages", Management::pages);
        checks.put("consumers and channels", Management::consumers);
        checks.put("connections", Management::connections);
        checks.put("the end of a virtual host", Management::theEnd);
        checks.forEach((name, check) -> System.out.println(name + "\t" + outcome(check)));
    }

    static String outcome(Check check) {
        try {
            check.run();
            return "passed";
        } catch (Throwable error) {
            return error.toString().replaceAll("[\\n\\t]", " ");
        }
    }

    static void overview() throws Exception {
        OverviewResponse found = api.getOverview();
        for (String text : List.of(
                found.getManagementPluginVersion(), found.getServerVersion(), found.getErlangVersion(),
                found.getFullErlangVersion(), found.getClusterName(), found.getRatesMode())) {
            isTrue(!text.isEmpty(), "a text for every version");
        }
        equal(1L, found.getObjectTotals().getConnections());
        only(found.getListeners(), one -> one.getProtocol().equals("amqp"));
        only(found.getExchangeTypes(), one -> one.getName().equals("topic"));
        NodeInfo node = api.getNode(found.getNode());
        equal(List.of("disc", true, false, false), List.of(
                node.getType(), node.isRunning(), node.isMemoryAlarmActive(), node.isDiskAlarmActive()));
        isTrue(node.getUptime() > 0 && node.getMemoryLimit() > 0 && node.getDiskFree() > 0
                && node.getFileDescriptorsTotal() > 0 && node.getNumberOfProcessors() > 0
                && !node.getOsPid().isEmpty(), "the node's figures");
        equal(1, api.getNodes().size());
        equal("guest", api.whoAmI().getName());
        isTrue(api.alivenessTest(VHOST), "aliveness");
        equal(List.of(), api.getExtensions());
        String name = api.getClusterName().getName();
        api.setClusterName("ours");
        equal("ours", api.getClusterName().getName());
        api.setClusterName(name);
        refused(401, () -> client("guest", "wrong").getOverview());
    }

    static void virtualHosts() throws Exception {
        VhostInfo found = api.getVhost(VHOST);
        equal(List.of(VHOST, "first", List.of("a", "b"), false),
                List.of(found.getName(), found.getDescription(), found.getTags(), found.isTracing()));
        equal(1, found.getClusterState().size());
        only(api.getVhosts(), one -> one.getName().equals(VHOST));
        equal(null, api.getVhost("none"));
    }

    static void limits() {
        api.limitMaxNumberOfQueues(VHOST, 100);
        api.limitMaxNumberOfConnections(VHOST, 50);
        VhostLimits found = api.getVhostLimits(VHOST);
        equal(List.of(100, 50), List.of(found.getMaxQueues(), found.getMaxConnections()));
        only(api.getVhostLimits(), one -> VHOST.equals(one.getVhost()));
        api.clearMaxQueuesLimit(VHOST);
        api.clearMaxConnectionsLimit(VHOST);
        equal(-1, api.getVhostLimits(VHOST).getMaxQueues());
    }

    static void users() throws Exception {
        api.createUser("joe", "eleven purple rabbits".toCharArray(), List.of("management"));
        equal(List.of("management"), api.getUser("joe").getTags());
        isTrue(!api.getUser("joe").getPasswordHash().isEmpty(), "a hash");
        equal("joe", client("joe", "eleven%20purple%20rabbits").whoAmI().getName());
        char[] hash = "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR".toCharArray();
        api.createUserWithPasswordHash("ann", hash, List.of("management", "policymaker"));
        equal("ann", client("ann", "test12").whoAmI().getName());
        api.updateUser("joe", "twelve".toCharArray(), List.of());
        equal(List.of(), api.getUser("joe").getTags());
        equal(3, api.getUsers().size());
        api.deleteUser("ann");
        equal(null, api.getUser("ann"));
    }

    static void permissions() {
        api.updatePermissions(VHOST, "joe", new UserPermissions(".*", "", "^c"));
        UserPermissions found = api.getPermissions(VHOST, "joe");
        equal(List.of("^c", "", ".*"), List.of(found.getConfigure(), found.getWrite(), found.getRead()));
        only(api.getPermissionsIn(VHOST), one -> one.getUser().equals("joe"));
        only(api.getPermissionsOf("joe"), one -> one.getVhost().equals(VHOST));
        only(api.getPermissions(), one -> one.getUser().equals("joe"));
        api.updateTopicPermissions(VHOST, "joe", new TopicPermissions("amq.topic", "^r", "^w"));
        for (List<TopicPermissions> list : List.of(
                api.getTopicPermissions(VHOST, "joe"), api.getTopicPermissionsIn(VHOST),
                api.getTopicPermissionsOf("joe"), api.getTopicPermissions())) {
            equal("amq.topic", only(list, one -> true).getExchange());
        }
        api.clearTopicPermissions(VHOST, "joe");
        equal(null, api.getTopicPermissions(VHOST, "joe"));
        api.clearPermissions(VHOST, "joe");
        equal(null, api.getPermissions(VHOST, "joe"));
        api.deleteUser("joe");
    }

    static void exchanges() throws Exception {
        Map<String, Object> arguments = Map.of("alternate-exchange", "amq.fanout");
        api.declareExchange(VHOST, "news", new ExchangeInfo("topic", true, false, false, arguments));
        ExchangeInfo found = api.getExchange(VHOST, "news");
        equal(List.of("topic", true, false, false, arguments), List.of(
                found.getType(), found.isDurable(), found.isAutoDelete(), found.isInternal(),
                found.getArguments()));
        refused(400, () -> {
            api.declareExchange(VHOST, "news", new ExchangeInfo("fanout", true, false));
            return null;
        });
        api.declareExchange(VHOST, "inbox", new ExchangeInfo("fanout", false, false));
        equal(9, api.getExchanges(VHOST).size());
        only(api.getExchanges(), one -> one.getName().equals("news"));
        equal(null, api.getExchange(VHOST, "none"));
    }

    static void queues() throws Exception {
        Map<String, Object> arguments = Map.of("x-max-length", 7, "x-queue-type", "quorum");
        api.declareQueue(VHOST, "votes", new QueueInfo(true, false, false, arguments));
        QueueInfo votes = api.getQueue(VHOST, "votes");
        equal(List.of("quorum", arguments, List.of(votes.getNode()), votes.getNode()), List.of(
                votes.getType(), votes.getArguments(), votes.getMemberNodes(), votes.getLeaderNode()));
        api.declareQueue(VHOST, "mail/1", new QueueInfo(true, false, false));
        QueueInfo found = api.getQueue(VHOST, "mail/1");
        equal(List.of("classic", true, false, false, "running"), List.of(
                found.getType(), found.isDurable(), found.isExclusive(), found.isAutoDelete(),
                found.getState()));
        refused(400, () -> {
            api.declareQueue(VHOST, "mail/1", new QueueInfo(false, false, false));
            return null;
        });
        equal(2, api.getQueues(VHOST).size());
        equal(2, api.getQueues().size());
        api.deleteQueue(VHOST, "votes", new DeleteQueueParameters(true, true));
        equal(null, api.getQueue(VHOST, "votes"));
    }

    static void bindings() {
        api.bindQueue(VHOST, "mail/1", "news", "eu.#/x");
        api.bindQueue(VHOST, "mail/1", "news", "", Map.of("a", 1));
        api.bindExchange(VHOST, "inbox", "news", "us.*");
        BindingInfo plain = only(api.getQueueBindingsBetween(VHOST, "news", "mail/1"),
                one -> one.getArguments().isEmpty());
        equal(List.of(VHOST, "news", "mail/1", DestinationType.QUEUE, "eu.#/x"), List.of(
                plain.getVhost(), plain.getSource(), plain.getDestination(),
                plain.getDestinationType(), plain.getRoutingKey()));
        equal(3, api.getQueueBindings(VHOST, "mail/1").size());
        equal(3, api.getBindingsBySource(VHOST, "news").size());
        BindingInfo other = only(api.getExchangeBindingsBetween(VHOST, "news", "inbox"), one -> true);
        equal(DestinationType.EXCHANGE, other.getDestinationType());
        equal("us.*", only(api.getExchangeBindingsByDestination(VHOST, "inbox"), one -> true).getRoutingKey());
        equal(4, api.getBindings(VHOST).size());
        equal(4, api.getBindings().size());
        api.unbindQueue(VHOST, "mail/1", "news", plain.getPropertiesKey());
        api.unbindExchange(VHOST, "inbox", "news", other.getPropertiesKey());
        equal(1, api.getBindingsBySource(VHOST, "news").size());
    }

    static void policies() throws Exception {
        PolicyInfo policy = new PolicyInfo("^mail", 3, "queues", Map.of("message-ttl", 60000));
        api.declarePolicy(VHOST, "short", policy);
        api.declareOperatorPolicy(VHOST, "bound", policy);
        for (List<PolicyInfo> list : List.of(api.getPolicies(VHOST), api.getPolicies(),
                api.getOperatorPolicies(VHOST), api.getOperatorPolicies())) {
            PolicyInfo found = only(list, one -> one.getVhost().equals(VHOST));
            equal(List.of("^mail", 3, "queues", policy.getDefinition()), List.of(
                    found.getPattern(), found.getPriority(), found.getApplyTo(), found.getDefinition()));
        }
        until(() -> "short".equals(api.getQueue(VHOST, "mail/1").getPolicy()), "a policy in force");
        equal(60000, api.getQueue(VHOST, "mail/1").getEffectivePolicyDefinition().get("message-ttl"));
        api.deletePolicy(VHOST, "short");
        api.deleteOperatorPolicy(VHOST, "bound");
        equal(List.of(List.of(), List.of()), List.of(api.getPolicies(VHOST), api.getOperatorPolicies()));
    }

    static void shovels() throws Exception {
        ShovelDetails details = new ShovelDetails("amqp://", "amqp:///%2F", 30, true, null);
        details.setSourceQueue("mail/1");
        details.setDestinationQueue("out");
        details.setAckMode("on-confirm");
        refused(400, () -> {
            api.declareShovel(VHOST, new ShovelInfo("move", details));
            return null;
        });
        equal(List.of(List.of(), List.of()), List.of(api.getShovels(VHOST), api.getShovels()));
        equal(List.of(List.of(), List.of()), List.of(api.getShovelsStatus(VHOST), api.getShovelsStatus()));
    }

    static void upstreams() throws Exception {
        UpstreamDetails details = new UpstreamDetails().setUri("amqp://a.example").setMaxHops(2);
        refused(400, () -> {
            api.declareUpstream(VHOST, "up", details);
            return null;
        });
        UpstreamSetDetails member = new UpstreamSetDetails();
        member.setUpstream("up");
        refused(400, () -> {
            api.declareUpstreamSet(VHOST, "all-of-them", List.of(member));
            return null;
        });
        equal(List.of(List.of(), List.of()), List.of(api.getUpstreams(VHOST), api.getUpstreamSets()));
    }

    static void definitions() {
        Definitions found = api.getDefinitions();
        isTrue(!found.getServerVersion().isEmpty(), "a version");
        only(found.getVhosts(), one -> one.getName().equals(VHOST));
        only(found.getUsers(), one -> one.getName().equals("guest"));
        only(found.getQueues(), one -> one.getName().equals("mail/1"));
        only(found.getExchanges(), one -> one.getName().equals("news"));
        only(found.getBindings(), one -> one.getSource().equals("news"));
        only(found.getPermissions(), one -> one.getVhost().equals(VHOST));
        equal(List.of(), found.getTopicPermissions());
    }

    static void messages() throws Exception {
        OutboundMessage message = new OutboundMessage().payload("hello").utf8Encoded()
                .properties(Map.of("content_type", "text/plain", "headers", Map.of("a", 1)));
        isTrue(api.publish(VHOST, "amq.default", "mail/1", message), "a route");
        isTrue(api.publish(VHOST, "amq.default", "mail/1",
                new OutboundMessage().payload("/w==").base64Encoded()), "a route");
        isTrue(!api.publish(VHOST, "amq.default", "nowhere", message), "no route");
        List<InboundMessage> seen = api.get(VHOST, "mail/1", 5, GetAckMode.NACK_REQUEUE_TRUE, GetEncoding.AUTO);
        equal(List.of("hello", 5, "string", 1, false), List.of(
                seen.get(0).getPayload(), seen.get(0).getPayloadBytes(), seen.get(0).getPayloadEncoding(),
                seen.get(0).getMessageCount(), seen.get(0).isRedelivered()));
        equal(Map.of("content_type", "text/plain", "headers", Map.of("a", 1)), seen.get(0).getProperties());
        equal(List.of("/w==", "base64"), List.of(seen.get(1).getPayload(), seen.get(1).getPayloadEncoding()));
        InboundMessage cut = api.get(
                VHOST, "mail/1", 1, GetAckMode.ACK_REQUEUE_FALSE, GetEncoding.BASE64, 2).get(0);
        equal(List.of("aGU=", 5, true), List.of(cut.getPayload(), cut.getPayloadBytes(), cut.isRedelivered()));
        DetailsParameters history = new DetailsParameters().lengths(60, 5)
                .messageRates(Duration.ofSeconds(60), Duration.ofSeconds(5));
        until(() -> !api.getQueue(VHOST, "mail/1", history).getMessagesDetails().getSamples().isEmpty(),
                "a sample");
        QueueInfo found = api.getQueue(VHOST, "mail/1", history);
        equal(List.of(1L, 1L, 0L, 2L), List.of(found.getTotalMessages(), found.getMessagesReady(),
                found.getMessagesUnacknowledged(), found.getMessageStats().getBasicPublish()));
        isTrue(!found.getMessageStats().getBasicPublishDetails().getSamples().isEmpty(), "samples");
        equal(1L, api.getVhost(VHOST).getMessages());
        api.purgeQueue(VHOST, "mail/1");
        equal(0L, api.getQueue(VHOST, "mail/1").getTotalMessages());
    }

    static void pages() {
        for (int number = 0; number < 5; number++) {
            api.declareQueue(VHOST, "page-" + number, new QueueInfo(true, false, false));
        }
        QueryParameters query = new QueryParameters().name("^page-", true).columns()
                .sort("name").sortReverse(true).query().pagination().pageSize(2).query();
        Page<QueueInfo> first = api.getQueues(VHOST, query);
        equal(List.of(1, 3, 2, 2, 5, 6), List.of(first.getPage(), first.getPageCount(), first.getPageSize(),
                first.getItemCount(), first.getFilteredCount(), first.getTotalCount()));
        Page<QueueInfo> second = api.getQueues(query.pagination().nextPage(first).query());
        equal(List.of("page-2", "page-1"), second.getItemsAsList().stream().map(QueueInfo::getName).toList());
        QueryParameters columns = new QueryParameters().pagination().pageSize(100).query()
                .columns().add("name").query();
        equal(9, api.getExchanges(VHOST, columns).getItemCount());
        equal(1, api.getConnections(columns).getItemCount());
        equal(1, api.getChannels(columns).getItemCount());
        for (int number = 0; number < 5; number++) {
            api.deleteQueue(VHOST, "page-" + number);
        }
    }

    static void consumers() throws Exception {
        channel.confirmSelect();
        channel.basicQos(5);
        channel.basicConsume("mail/1", false, "reader", (tag, delivery) -> {}, tag -> {});
        for (List<ConsumerDetails> list : List.of(api.getConsumers(), api.getConsumers(VHOST),
                api.getQueue(VHOST, "mail/1").getConsumerDetails())) {
            ConsumerDetails found = only(list, one -> true);
            equal(List.of("reader", 5, true, true, false, "mail/1"), List.of(
                    found.getConsumerTag(), found.getPrefetchCount(), found.isActive(), found.isAckRequired(),
                    found.isExclusive(), found.getQueueDetails().getName()));
            equal(1, found.getChannelDetails().getNumber());
        }
        ChannelInfo listed = only(api.getChannels(), one -> true);
        ChannelInfo found = api.getChannel(listed.getName());
        equal(List.of(1, "guest", VHOST, true, false, 1, "running"), List.of(
                found.getNumber(), found.getUser(), found.getVhost(), found.usesPublisherConfirms(),
                found.isTransactional(), found.getConsumerCount(), found.getState()));
        equal(found.getName(), found.getConnectionDetails().getName() + " (1)");
        only(api.getChannels(found.getConnectionDetails().getName()), one -> true);
        channel.basicCancel("reader");
        equal(null, api.getChannel("none"));
    }

    static void connections() throws Exception {
        ConnectionInfo listed = only(api.getConnections(), one -> true);
        ConnectionInfo found = api.getConnection(listed.getName());
        equal(List.of("AMQP 0-9-1", "guest", VHOST, "running", "network", 1, false, "PLAIN"), List.of(
                found.getProtocol(), found.getUser(), found.getVhost(), found.getState(), found.getType(),
                found.getChannels(), found.isUsesTLS(), found.getAuthMechanism()));
        isTrue(found.getOctetsReceived() > 0 && found.getConnectedAt() > 0 && found.getFrameMax() > 0
                && found.getPeerPort() > 0, "the connection's figures");
        equal(List.of("RabbitMQ", "checks"), List.of(
                found.getClientProperties().getProduct(), found.getClientProperties().getConnectionName()));
        equal(found.getName(), only(api.getConnectionsOfUser("guest"), one -> true).getName());
        BlockingQueue<ShutdownSignalException> ends = new LinkedBlockingQueue<>();
        connection.addShutdownListener(ends::add);
        api.closeConnection(found.getName(), "enough");
        isTrue(ends.poll(WAIT_S, TimeUnit.SECONDS).getMessage().contains("enough"), "the reason");
        until(() -> api.getConnections().isEmpty(), "the connection's end in the list");
        equal(null, api.getConnection(found.getName()));
        api.closeAllConnectionsOfUser("guest");
    }

    static void theEnd() throws Exception {
        api.deleteExchange(VHOST, "inbox");
        equal(null, api.getExchange(VHOST, "inbox"));
        api.deleteQueue(VHOST, "mail/1");
        equal(null, api.getQueue(VHOST, "mail/1"));
        api.deleteVhost(VHOST);
        equal(null, api.getVhost(VHOST));
    }

    static Client client(String user, String password) throws Exception {
        return new Client(String.format(url, user + ":" + password));
    }

    /** The one item for which something is so. */
    static <T> T only(List<T> items, Predicate<T> so) {
        List<T> found = items.stream().filter(so).toList();
        equal(1, found.size());
        return found.get(0);
    }

    static void refused(int status, Callable<?> call) throws Exception {
        try {
            call.call();
        } catch (HttpClientException error) {
            equal(status, error.status());
            return;
        }
        throw new AssertionError("not refused with " + status);
    }

    static void until(Callable<Boolean> so, String what) throws Exception {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(WAIT_S);
        while (!so.call()) {
            isTrue(System.nanoTime() < deadline, what);
            Thread.sleep(20);
        }
    }

    static void isTrue(boolean so, String what) {
        if (!so) {
            throw new AssertionError("not so: " + what);
        }
    }

    static void equal(Object wanted, Object found) {
        if (!Objects.equals(wanted, found)) {
            throw new AssertionError("wanted " + wanted + ", found " + found
                    + " at line " + new Throwable().getStackTrace()[1].getLineNumber());
        }
    }
}
