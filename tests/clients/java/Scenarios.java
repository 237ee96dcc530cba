import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.DefaultConsumer;
import com.rabbitmq.client.Delivery;
import com.rabbitmq.client.Envelope;
import com.rabbitmq.client.MessageProperties;
import com.rabbitmq.client.RpcClient;
import com.rabbitmq.client.RpcServer;
import com.rabbitmq.client.ShutdownSignalException;
import com.rabbitmq.client.impl.LongStringHelper;
import java.io.IOException;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Date;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** What applications do with the Java client; each scenario prints its name and how it went. */
public class Scenarios {
    interface Scenario {
        void run(Connection connection) throws Exception;
    }

    static final long WAIT_S = 10;
    /** Of a body frame, with the frame size both sides agree on. */
    static final int PAYLOAD_BYTES = 131_072 - 8;

    public static void main(String[] arguments) throws Exception {
        Map<String, Scenario> scenarios = new LinkedHashMap<>();
        scenarios.put("publishes are confirmed", Scenarios::confirms);
        scenarios.put("unroutable messages come back", Scenarios::returns);
        scenarios.put("a full queue says nack", Scenarios::nacks);
        scenarios.put("a transaction is committed or rolled back", Scenarios::transaction);
        scenarios.put("calls are answered", Scenarios::calls);
        scenarios.put("numbers may be of any width", Scenarios::numbers);
        scenarios.put("a bad argument closes the channel", Scenarios::badArgument);
        scenarios.put("properties and headers arrive as they were sent", Scenarios::properties);
        scenarios.put("bodies of all sizes arrive", Scenarios::sizes);
        scenarios.put("a prefetch bounds what is delivered", Scenarios::prefetch);
        scenarios.put("dead letters tell where they were", Scenarios::deadLetters);
        scenarios.put("the end of a queue cancels its consumer", Scenarios::cancels);
        scenarios.put("messages with a priority go first", Scenarios::priorities);
        scenarios.put("a single active consumer hands over", Scenarios::singleActive);
        scenarios.put("a quorum queue counts what came back", Scenarios::quorum);
        scenarios.put("a stream is read from anywhere", Scenarios::stream);
        ConnectionFactory factory = new ConnectionFactory();
        factory.setUri(arguments[0]);
        for (Map.Entry<String, Scenario> scenario : scenarios.entrySet()) {
            System.out.println(scenario.getKey() + "\t" + outcome(factory, scenario.getValue()));
        }
    }

    static String outcome(ConnectionFactory factory, Scenario scenario) {
        try (Connection connection = factory.newConnection()) {
            scenario.run(connection);
            return "passed";
        } catch (Throwable error) {
            return error.toString().replace('\n', ' ');
        }
    }

    static void confirms(Connection connection) throws Exception {
        Channel channel = connection.createChannel();
        String queue = channel.queueDeclare().getQueue();
        channel.confirmSelect();
        for (int number = 0; number < 1000; number++) {
            channel.basicPublish("", queue, MessageProperties.PERSISTENT_BASIC, body(number));
        }
        channel.waitForConfirmsOrDie(WAIT_S * 1000);
        equal(1000, channel.queueDeclarePassive(queue).getMessageCount());
    }

    static void returns(Connection connection) throws Exception {
        Channel channel = connection.createChannel();
        BlockingQueue<Integer> codes = new LinkedBlockingQueue<>();
        channel.addReturnListener((code, text, exchange, key, properties, body) -> codes.add(code));
        channel.basicPublish("amq.direct", "nobody", true, null, body(1));
        equal(312, codes.poll(WAIT_S, TimeUnit.SECONDS));
    }

    static void nacks(Connection connection) throws Exception {
        Channel channel = connection.createChannel();
        String queue = name();
        Map<String, Object> limits = Map.of("x-max-length", 1, "x-overflow", "reject-publish");
        channel.queueDeclare(queue, false, true, false, limits);
        channel.confirmSelect();
        channel.basicPublish("", queue, null, body(1));
        equal(true, channel.waitForConfirms(WAIT_S * 1000));
        channel.basicPublish("", queue, null, body(2));
        equal(false, channel.waitForConfirms(WAIT_S * 1000));
        equal(1, channel.queueDeclarePassive(queue).getMessageCount());
    }

    static void transaction(Connection connection) throws Exception {
        Channel channel = connection.createChannel();
        String queue = channel.queueDeclare().getQueue();
        channel.txSelect();
        channel.basicPublish("", queue, null, body(1));
        channel.txRollback();
        channel.basicPublish("", queue, null, body(2));
        equal(0, channel.queueDeclarePassive(queue).getMessageCount());
        channel.txCommit();
        equal("2", text(channel.basicGet(queue, true).getBody()));
        equal(null, channel.basicGet(queue, true));
        channel.txCommit();
    }

    static void calls(Connection connection) throws Exception {
        Channel channel = connection.createChannel();
        String queue = channel.queueDeclare().getQueue();
        RpcServer server = new RpcServer(connection.createChannel(), queue) {
            @Override
            public byte[] handleCall(byte[] request, AMQP.BasicProperties reply) {
                return ("re: " + text(request)).getBytes();
            }
        };
        Thread thread = new Thread(() -> {
            try {
                server.mainloop();
            } catch (IOException | ShutdownSignalException end) {
                // The connection is closed with the scenario.
            }
        });
        thread.setDaemon(true);
        thread.start();
        RpcClient client = new RpcClient(channel, "", queue, "amq.rabbitmq.reply-to", 10_000);
        equal("re: 7", text(client.primitiveCall(body(7))));
    }

    static void numbers(Connection connection) throws Exception {
        Channel channel = connection.createChannel();
        String queue = name();
        for (Object number : new Object[] {5, 5L, (short) 5, (byte) 5}) {
            channel.queueDeclare(queue, false, true, false, Map.of("x-max-length", number));
        }
    }

    static void badArgument(Connection connection) throws Exception {
        Channel channel = connection.createChannel();
        String queue = name();
        try {
            channel.queueDeclare(queue, false, true, false, Map.of("x-max-priority", 256));
        } catch (IOException refused) {
            ShutdownSignalException cause = (ShutdownSignalException) refused.getCause();
            AMQP.Channel.Close close = (AMQP.Channel.Close) cause.getReason();
            equal(406, close.getReplyCode());
            String start = "PRECONDITION_FAILED - invalid arg 'x-max-priority' for queue '" + queue;
            equal(start, close.getReplyText().substring(0, start.length()));
            return;
        }
        throw new AssertionError("256 was taken for a priority");
    }

    static void properties(Connection connection) throws Exception {
        Channel channel = connection.createChannel();
        String queue = channel.queueDeclare().getQueue();
        Date when = new Date(1_700_000_000_000L);
        Map<String, Object> headers = new HashMap<>();
        headers.put("bool", true);
        headers.put("byte", (byte) -3);
        headers.put("short", (short) -300);
        headers.put("int", -70_000);
        headers.put("long", 1L << 40);
        headers.put("float", 0.5f);
        headers.put("double", 0.25);
        headers.put("decimal", new BigDecimal("3.14"));
        headers.put("text", LongStringHelper.asLongString("grüße"));
        headers.put("nothing", null);
        headers.put("when", when);
        headers.put("list", List.of(1, LongStringHelper.asLongString("two"), List.of(3)));
        headers.put("table", Map.of("deeper", LongStringHelper.asLongString("x")));
        AMQP.BasicProperties sent = new AMQP.BasicProperties(
            "application/atom+xml", "identity", headers, 2, 4, "c", "r", "60000", "m", when, "t",
            "guest", "a", null);
        channel.basicPublish("", queue, sent, "body".getBytes());
        Delivery got = new Inbox(channel, queue, true, Map.of()).next();
        equal("body", text(got.getBody()));
        equal(headers, got.getProperties().getHeaders());
        // Properties have no equality of their own.
        equal(sent.builder().headers(null).build().toString(),
            got.getProperties().builder().headers(null).build().toString());
    }

    static void sizes(Connection connection) throws Exception {
        Channel channel = connection.createChannel();
        String queue = channel.queueDeclare().getQueue();
        Inbox inbox = new Inbox(channel, queue, true, Map.of());
        int whole = PAYLOAD_BYTES;
        for (int size : new int[] {0, 1, whole - 1, whole, whole + 1, 2 * whole, 5_000_000}) {
            byte[] body = new byte[size];
            new Random(size).nextBytes(body);
            channel.basicPublish("", queue, null, body);
            equal(true, Arrays.equals(body, inbox.next().getBody()));
        }
    }

    static void prefetch(Connection connection) throws Exception {
        Channel channel = connection.createChannel();
        String queue = channel.queueDeclare().getQueue();
        channel.confirmSelect();
        for (int number = 0; number < 5; number++) {
            channel.basicPublish("", queue, null, body(number));
        }
        channel.waitForConfirmsOrDie(WAIT_S * 1000);
        channel.basicQos(2);
        Inbox inbox = new Inbox(channel, queue, false, Map.of());
        long first = inbox.next().getEnvelope().getDeliveryTag();
        long second = inbox.next().getEnvelope().getDeliveryTag();
        equal(3, channel.queueDeclarePassive(queue).getMessageCount());
        channel.basicNack(second, false, true);
        Delivery again = inbox.next();
        equal("1 true", text(again.getBody()) + " " + again.getEnvelope().isRedeliver());
        channel.basicAck(first, false);
        equal(List.of("2"), inbox.bodies(1));
        channel.basicAck(again.getEnvelope().getDeliveryTag(), true);
        equal(List.of("3"), inbox.bodies(1));
    }

    static void deadLetters(Connection connection) throws Exception {
        Channel channel = connection.createChannel();
        String dead = channel.queueDeclare().getQueue();
        String work = name();
        Map<String, Object> target =
            Map.of("x-dead-letter-exchange", "", "x-dead-letter-routing-key", dead);
        channel.queueDeclare(work, false, true, false, target);
        channel.basicPublish("", work, null, body(1));
        Inbox working = new Inbox(channel, work, false, Map.of());
        channel.basicReject(working.next().getEnvelope().getDeliveryTag(), false);
        Delivery letter = new Inbox(channel, dead, true, Map.of()).next();
        equal("1", text(letter.getBody()));
        Map<String, Object> headers = letter.getProperties().getHeaders();
        equal("rejected", headers.get("x-first-death-reason").toString());
        Map<?, ?> death = (Map<?, ?>) ((List<?>) headers.get("x-death")).get(0);
        equal(work, death.get("queue").toString());
        equal("rejected", death.get("reason").toString());
        equal(1L, death.get("count"));
    }

    static void cancels(Connection connection) throws Exception {
        Channel channel = connection.createChannel();
        String queue = channel.queueDeclare().getQueue();
        Inbox inbox = new Inbox(channel, queue, true, Map.of());
        connection.createChannel().queueDelete(queue);
        equal(inbox.tag, inbox.cancelled.poll(WAIT_S, TimeUnit.SECONDS));
    }

    static void priorities(Connection connection) throws Exception {
        Channel channel = connection.createChannel();
        String queue = name();
        channel.queueDeclare(queue, false, true, false, Map.of("x-max-priority", 10));
        channel.confirmSelect();
        for (int priority : new int[] {1, 9, 5, 99}) {
            AMQP.BasicProperties properties =
                new AMQP.BasicProperties.Builder().priority(priority).build();
            channel.basicPublish("", queue, properties, body(priority));
        }
        channel.waitForConfirmsOrDie(WAIT_S * 1000);
        Inbox inbox = new Inbox(channel, queue, true, Map.of());
        equal(List.of("99", "9", "5", "1"), inbox.bodies(4));
    }

    static void singleActive(Connection connection) throws Exception {
        Channel channel = connection.createChannel();
        String queue = name();
        channel.queueDeclare(queue, false, true, false, Map.of("x-single-active-consumer", true));
        Inbox first = new Inbox(connection.createChannel(), queue, true, Map.of());
        Inbox second = new Inbox(connection.createChannel(), queue, true, Map.of());
        for (int number = 0; number < 3; number++) {
            channel.basicPublish("", queue, null, body(number));
        }
        equal(List.of("0", "1", "2"), first.bodies(3));
        first.getChannel().basicCancel(first.tag);
        channel.basicPublish("", queue, null, body(3));
        equal(List.of("3"), second.bodies(1));
    }

    static void quorum(Connection connection) throws Exception {
        Channel channel = connection.createChannel();
        String queue = name();
        Map<String, Object> arguments = Map.of("x-queue-type", "quorum", "x-delivery-limit", 5);
        channel.queueDeclare(queue, true, false, false, arguments);
        channel.confirmSelect();
        channel.basicPublish("", queue, null, body(1));
        channel.waitForConfirmsOrDie(WAIT_S * 1000);
        Inbox inbox = new Inbox(channel, queue, false, Map.of());
        channel.basicReject(inbox.next().getEnvelope().getDeliveryTag(), true);
        Delivery again = inbox.next();
        equal(true, again.getEnvelope().isRedeliver());
        equal(1L, again.getProperties().getHeaders().get("x-delivery-count"));
        channel.basicAck(again.getEnvelope().getDeliveryTag(), false);
        channel.queueDelete(queue);
    }

    static void stream(Connection connection) throws Exception {
        Channel channel = connection.createChannel();
        String queue = name();
        channel.queueDeclare(queue, true, false, false, Map.of("x-queue-type", "stream"));
        channel.confirmSelect();
        for (int number = 0; number < 10; number++) {
            channel.basicPublish("", queue, null, body(number));
        }
        channel.waitForConfirmsOrDie(WAIT_S * 1000);
        for (Object offset : new Object[] {"first", 0, 4L, "1h"}) {
            Channel reader = connection.createChannel();
            reader.basicQos(100);
            Inbox inbox = new Inbox(reader, queue, false, Map.of("x-stream-offset", offset));
            long from = offset instanceof Number ? ((Number) offset).longValue() : 0;
            for (long number = from; number < 10; number++) {
                Delivery delivery = inbox.next();
                equal(number, delivery.getProperties().getHeaders().get("x-stream-offset"));
                equal(Long.toString(number), text(delivery.getBody()));
                reader.basicAck(delivery.getEnvelope().getDeliveryTag(), false);
            }
            reader.close();
        }
        channel.queueDelete(queue);
    }

    /** A consumer that keeps what it gets. */
    static class Inbox extends DefaultConsumer {
        private final BlockingQueue<Delivery> deliveries = new LinkedBlockingQueue<>();
        final BlockingQueue<String> cancelled = new LinkedBlockingQueue<>();
        /** Known at once; the library's own is set by another thread, a moment later. */
        final String tag;

        Inbox(Channel channel, String queue, boolean noAck, Map<String, Object> arguments)
                throws IOException {
            super(channel);
            tag = channel.basicConsume(queue, noAck, arguments, this);
        }

        @Override
        public void handleDelivery(
                String tag, Envelope envelope, AMQP.BasicProperties properties, byte[] body) {
            deliveries.add(new Delivery(envelope, properties, body));
        }

        @Override
        public void handleCancel(String tag) {
            cancelled.add(tag);
        }

        Delivery next() throws InterruptedException {
            Delivery delivery = deliveries.poll(WAIT_S, TimeUnit.SECONDS);
            if (delivery == null) {
                throw new AssertionError("nothing was delivered");
            }
            return delivery;
        }

        List<String> bodies(int count) throws InterruptedException {
            List<String> bodies = new ArrayList<>();
            for (int number = 0; number < count; number++) {
                bodies.add(text(next().getBody()));
            }
            return bodies;
        }
    }

    static String name() {
        return "java-" + UUID.randomUUID();
    }

    static byte[] body(int number) {
        return Integer.toString(number).getBytes();
    }

    static String text(byte[] body) {
        return new String(body);
    }

    static void equal(Object expected, Object found) {
        if (!java.util.Objects.equals(expected, found)) {
            throw new AssertionError(expected + " was expected, " + found + " is there");
        }
    }
}
