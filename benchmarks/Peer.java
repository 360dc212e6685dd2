import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.Hashtable;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import javax.jms.Connection;
import javax.jms.ConnectionFactory;
import javax.jms.DeliveryMode;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageListener;
import javax.jms.MessageProducer;
import javax.jms.Queue;
import javax.jms.Session;
import javax.jms.TextMessage;
import javax.naming.InitialContext;

/**
 * The roles of an exchange in plain Java with the broker's own client: what anybody would write there. Texts that are
 * there already, the same properties as ours. Started with a file of properties and one word, `asks` or `answers`.
 */
public final class Peer {
    private static final int IN_FLIGHT = 100;
    private static final int TRANSACTION = 100;
    private final Properties plan;
    private final Connection connection;
    private final Session session;
    private final Queue requests;
    private final Queue replies;
    private final MessageProducer producer;
    private final Map<String, List<String[]>> texts = new java.util.HashMap<>();
    private final Set<String> waiting = new HashSet<>();
    private MessageConsumer consumer;
    private int number;
    private int left;
    private int came;

    private Peer(Properties plan, boolean transacted) throws Exception {
        this.plan = plan;
        Hashtable<String, String> environment = new Hashtable<>();
        environment.put("java.naming.factory.initial", plan.getProperty("factory"));
        environment.put("java.naming.provider.url", plan.getProperty("url"));
        ConnectionFactory factory =
                (ConnectionFactory) new InitialContext(environment).lookup("ConnectionFactory");
        connection = factory.createConnection(plan.getProperty("user"), plan.getProperty("password"));
        session = connection.createSession(transacted, Session.AUTO_ACKNOWLEDGE);
        requests = session.createQueue(plan.getProperty("queue"));
        replies = session.createQueue(plan.getProperty("replies"));
        producer = session.createProducer(null);
    }

    public static void main(String[] arguments) throws Exception {
        Properties plan = new Properties();
        try (var in = Files.newBufferedReader(Path.of(arguments[0]), StandardCharsets.UTF_8)) {
            plan.load(in);
        }
        String scenario = plan.getProperty("scenario");
        boolean answers = arguments[1].equals("answers");
        Peer peer = new Peer(plan, scenario.equals("stream"));
        if (scenario.equals("stream")) {
            peer.consumer = answers ? peer.session.createConsumer(peer.requests) : null;
        } else if (answers) {
            peer.listen(peer.requests, peer::reply);
        } else {
            peer.listen(peer.replies, peer::next);
        }
        peer.connection.start();
        System.out.println("ready");
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            if (line.startsWith("cpu")) {
                System.out.println(((com.sun.management.OperatingSystemMXBean)
                        java.lang.management.ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime() / 1e9);
            } else {
                int amount = Integer.parseInt(line.substring(line.indexOf(' ') + 1).trim());
                System.out.println(
                        scenario.equals("stream") ? peer.stream(amount, answers) : answers ? amount : peer.ask(amount));
            }
        }
        Runtime.getRuntime().halt(0);
    }

    private interface Handler {
        void handle(Message message) throws JMSException;
    }

    private void listen(Queue queue, Handler handler) throws JMSException {
        MessageListener listener = message -> {
            try {
                handler.handle(message);
            } catch (JMSException error) {
                throw new IllegalStateException(error);
            }
        };
        session.createConsumer(queue).setMessageListener(listener);
    }

    /** So many exchanges: a hundred at once, or of batches one after the other. */
    private synchronized int ask(int amount) throws Exception {
        int answers = texts("answer").size();
        int atOnce = plan.getProperty("scenario").equals("batches") ? 1 : Math.min(IN_FLIGHT, amount);
        left = amount - atOnce;
        Session asking = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        try {
            MessageProducer first = asking.createProducer(null);
            for (int at = 0; at < atOnce; at++) {
                request(asking, first);
            }
            while (!waiting.isEmpty()) {
                wait();
            }
        } finally {
            asking.close(); // in JMS 1.1 a session is not AutoCloseable
        }
        return amount * answers;
    }

    private void request(Session from, MessageProducer by) throws JMSException {
        String id = "j-" + number++;
        waiting.add(id);
        Message message = made(from, texts("request").get(0), id);
        message.setJMSReplyTo(replies);
        by.send(requests, message, DeliveryMode.NON_PERSISTENT, 4, 0);
    }

    private synchronized void next(Message message) throws JMSException {
        if (((TextMessage) message).getText().isEmpty()) {
            throw new IllegalStateException("an empty answer");
        }
        if (++came % texts("answer").size() != 0) {
            return;
        }
        waiting.remove(message.getJMSCorrelationID());
        if (left-- > 0) {
            request(session, producer);
        } else if (waiting.isEmpty()) {
            notifyAll();
        }
    }

    private void reply(Message message) throws JMSException {
        if (((TextMessage) message).getText().isEmpty()) {
            throw new IllegalStateException("an empty request");
        }
        for (String[] text : texts("answer")) {
            producer.send(
                    message.getJMSReplyTo(), made(session, text, message.getJMSCorrelationID()), DeliveryMode.NON_PERSISTENT, 4, 0);
        }
    }

    private int stream(int amount, boolean answers) throws JMSException {
        for (int at = 1; at <= amount; at++) {
            if (answers) {
                if (consumer.receive(60_000) == null) {
                    throw new IllegalStateException("no message");
                }
            } else {
                producer.send(requests, made(session, texts("message").get(0), null), DeliveryMode.PERSISTENT, 4, 0);
            }
            if (at % TRANSACTION == 0) {
                session.commit();
            }
        }
        return amount;
    }

    private static Message made(Session session, String[] text, String id) throws JMSException {
        TextMessage message = session.createTextMessage(text[0]);
        for (int at = 1; at < text.length; at += 2) {
            message.setStringProperty(text[at], text[at + 1]);
        }
        message.setJMSCorrelationID(id);
        return message;
    }

    /** The messages of a kind: body, then names and values of properties. */
    private List<String[]> texts(String kind) {
        return texts.computeIfAbsent(kind, this::read);
    }

    private List<String[]> read(String kind) {
        List<String[]> found = new ArrayList<>();
        for (int at = 0; plan.containsKey(kind + "." + at); at++) {
            List<String> parts = new ArrayList<>(List.of(plan.getProperty(kind + "." + at)));
            String prefix = kind + "." + at + ".";
            for (String name : plan.stringPropertyNames()) {
                if (name.startsWith(prefix)) {
                    parts.add(name.substring(prefix.length()));
                    parts.add(plan.getProperty(name));
                }
            }
            found.add(parts.toArray(new String[0]));
        }
        return found;
    }
}
