import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.security.MessageDigest;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeSet;
import javax.jms.*;

/**
 * A Java JMS client that does what its standard input says: a command a line, words parted by tabulators, text outside
 * ASCII as Java writes it (backslash, u, four digits). It answers with lines of words and ends each answer by a line with a dot.
 */
public class JmsPeer {
    static final int SHOWN = 65536;
    private final Connection connection;
    private final Map<String, Session> sessions = new HashMap<>();
    private final Map<String, MessageConsumer> consumers = new HashMap<>();
    private final Map<String, Destination> temporaries = new HashMap<>();
    private final Map<String, Message> last = new HashMap<>();
    private final Session sending;
    private final PrintStream out = new PrintStream(System.out, false, StandardCharsets.US_ASCII);

    JmsPeer(Connection connection) throws JMSException {
        this.connection = connection;
        this.sending = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        connection.start();
    }

    /** Arguments: class of the connection factory, URL, user. The password is the first line of the standard input. */
    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        ConnectionFactory factory = (ConnectionFactory) Class.forName(arguments[0]).getConstructor(String.class).newInstance(arguments[1]);
        JmsPeer peer = new JmsPeer(factory.createConnection(arguments[2], in.readLine()));
        peer.end();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            peer.obey(line);
        }
        System.exit(0); // what hangs in a broker's client must not outlive the tests
    }

    private void obey(String line) {
        String[] words = line.split("\t", -1);
        for (int at = 0; at < words.length; at++) {
            words[at] = unescaped(words[at]);
        }
        try {
            carryOut(words);
        } catch (Exception error) {
            tell("error", error.getClass().getSimpleName(), String.valueOf(error.getMessage()));
        }
        end();
    }

    private void carryOut(String[] words) throws Exception {
        switch (words[0]) {
            case "consume": // id, destination or "temporary", selector
                consume(words[1], words[2], words[3].isEmpty() ? null : words[3]);
                break;
            case "close":
                consumers.remove(words[1]).close();
                sessions.remove(words[1]).close();
                break;
            case "receive": // id, milliseconds
                Message message = consumers.get(words[1]).receive(Long.parseLong(words[2]));
                last.put(words[1], message);
                tellMessage(message);
                break;
            case "send": // destination, id of a temporary or a destination for replies, kind, file, headers and properties
                Message sent = message(words[3], words[4], words, 5);
                if (!words[2].isEmpty()) {
                    sent.setJMSReplyTo(temporaries.containsKey(words[2]) ? temporaries.get(words[2]) : destination(words[2]));
                }
                send(destination(words[1]), sent);
                tell("id", sent.getJMSMessageID());
                break;
            case "answer": // id, kind, file, headers and properties
                Message asked = last.get(words[1]);
                Message answer = message(words[2], words[3], words, 4);
                if (answer.getJMSCorrelationID() == null) {
                    answer.setJMSCorrelationID(asked.getJMSMessageID());
                }
                send(asked.getJMSReplyTo(), answer);
                break;
            case "supplier": // queue, what goes into JMSCorrelationID, whether the header's correlationId is copied
                JavaSupplier supplier = new JavaSupplier(connection, words[1], words[2], Boolean.parseBoolean(words[3]));
                consumers.put(words[1], supplier.consumer);
                sessions.put(words[1], supplier.session);
                break;
            case "request": // queue, file, pairing, milliseconds
                new JavaRequestor(connection, this::tell).ask(words[1], text(words[2]), words[3], Long.parseLong(words[4]));
                break;
            default:
                tell("error", "unknown command", words[0]);
        }
    }

    private void consume(String id, String where, String selector) throws JMSException {
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Destination from = where.equals("temporary") ? session.createTemporaryQueue() : destination(where);
        if (where.equals("temporary")) {
            temporaries.put(id, from);
        }
        consumers.put(id, session.createConsumer(from, selector));
        sessions.put(id, session);
    }

    private void send(Destination to, Message message) throws JMSException {
        MessageProducer producer = sending.createProducer(to);
        producer.send(message, message.getJMSDeliveryMode(), message.getJMSPriority(), 0);
        producer.close();
    }

    private Destination destination(String text) throws JMSException {
        String name = text.substring(text.indexOf(':') + 1);
        return text.startsWith("topic:") ? sending.createTopic(name) : sending.createQueue(name);
    }

    /** A message of a kind; each further word is `Type name=value`, or `header name=value`. */
    private Message message(String kind, String file, String[] words, int from) throws Exception {
        Message made;
        switch (kind) {
            case "text": made = sending.createTextMessage(text(file)); break;
            case "bytes": made = sending.createBytesMessage(); ((BytesMessage) made).writeBytes(Files.readAllBytes(Paths.get(file))); break;
            case "object": made = sending.createObjectMessage(new TreeSet<>(Collections.singleton(text(file)))); break;
            case "map": made = sending.createMapMessage(); ((MapMessage) made).setString("body", text(file)); break;
            default: made = sending.createMessage();
        }
        for (int at = from; at < words.length; at++) {
            String type = words[at].substring(0, words[at].indexOf(' '));
            String name = words[at].substring(type.length() + 1, words[at].indexOf('='));
            set(made, type, name, words[at].substring(words[at].indexOf('=') + 1));
        }
        return made;
    }

    private static void set(Message message, String type, String name, String value) throws JMSException {
        switch (type) {
            case "String": message.setStringProperty(name, value); break;
            case "Integer": message.setIntProperty(name, Integer.parseInt(value)); break;
            case "Long": message.setLongProperty(name, Long.parseLong(value)); break;
            case "Boolean": message.setBooleanProperty(name, Boolean.parseBoolean(value)); break;
            case "Double": message.setDoubleProperty(name, Double.parseDouble(value)); break;
            case "Float": message.setFloatProperty(name, Float.parseFloat(value)); break;
            case "Short": message.setShortProperty(name, Short.parseShort(value)); break;
            case "Byte": message.setByteProperty(name, Byte.parseByte(value)); break;
            default:
                switch (name) {
                    case "correlation": message.setJMSCorrelationID(value); break;
                    case "type": message.setJMSType(value); break;
                    case "priority": message.setJMSPriority(Integer.parseInt(value)); break;
                    default: message.setJMSDeliveryMode(Integer.parseInt(value));
                }
        }
    }

    private void tellMessage(Message message) throws Exception {
        if (message == null) {
            tell("none");
            return;
        }
        tell("kind", message instanceof TextMessage ? "TextMessage" : message instanceof BytesMessage ? "BytesMessage" : "Message");
        byte[] body = body(message);
        tell("size", String.valueOf(body.length));
        tell("sha256", String.format("%064x", new java.math.BigInteger(1, MessageDigest.getInstance("SHA-256").digest(body))));
        if (body.length < SHOWN) {
            tell("body", new String(body, StandardCharsets.UTF_8));
        }
        tell("id", message.getJMSMessageID());
        tell("correlation", message.getJMSCorrelationID());
        tell("type", message.getJMSType());
        tell("mode", String.valueOf(message.getJMSDeliveryMode()));
        tell("priority", String.valueOf(message.getJMSPriority()));
        tell("expires", String.valueOf(message.getJMSExpiration() > 0));
        Destination reply = message.getJMSReplyTo();
        tell("reply", reply == null ? null : reply instanceof TemporaryQueue ? "temporary" : reply instanceof Queue ? "queue" : "topic");
        for (Object name : Collections.list(message.getPropertyNames())) {
            Object value = message.getObjectProperty((String) name);
            tell("property", (String) name, value.getClass().getSimpleName(), value.toString());
        }
    }

    static byte[] body(Message message) throws JMSException {
        if (message instanceof BytesMessage) {
            byte[] data = new byte[(int) ((BytesMessage) message).getBodyLength()];
            ((BytesMessage) message).readBytes(data);
            return data;
        }
        String text = message instanceof TextMessage ? ((TextMessage) message).getText() : null;
        return text == null ? new byte[0] : text.getBytes(StandardCharsets.UTF_8);
    }

    private static String text(String file) throws Exception {
        return file.isEmpty() ? "" : new String(Files.readAllBytes(Paths.get(file)), StandardCharsets.UTF_8);
    }

    void tell(String... words) {
        StringBuilder line = new StringBuilder();
        for (String word : words) {
            line.append(line.length() == 0 ? "" : "\t").append(word == null ? "" : escaped(word));
        }
        out.println(line);
    }

    private void end() {
        out.println(".");
        out.flush();
    }

    private static String escaped(String text) {
        StringBuilder shown = new StringBuilder();
        text.chars().forEach(unit -> shown.append(unit >= 32 && unit < 127 && unit != '\\' ? String.valueOf((char) unit) : String.format("\\u%04x", unit)));
        return shown.toString();
    }

    private static String unescaped(String text) {
        StringBuilder read = new StringBuilder();
        for (int at = 0; at < text.length(); at++) {
            if (text.charAt(at) == '\\') {
                read.append((char) Integer.parseInt(text.substring(at + 2, at + 6), 16));
                at += 5;
            } else {
                read.append(text.charAt(at));
            }
        }
        return read.toString();
    }
}
