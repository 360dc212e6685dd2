package mtosi_jms.javax;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.AbstractMap.SimpleImmutableEntry;
import java.util.ArrayList;
import java.util.Enumeration;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import javax.jms.BytesMessage;
import javax.jms.CompletionListener;
import javax.jms.Destination;
import javax.jms.ExceptionListener;
import javax.jms.JMSException;
import javax.jms.MapMessage;
import javax.jms.Message;
import javax.jms.MessageEOFException;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.ObjectMessage;
import javax.jms.Queue;
import javax.jms.Session;
import javax.jms.StreamMessage;
import javax.jms.TemporaryQueue;
import javax.jms.TemporaryTopic;
import javax.jms.TextMessage;
import javax.jms.Topic;

/**
 * What Python calls for a message: one call, whatever the message holds, for a call costs more than what it does.
 *
 * <p>A head goes out as JSON, which Python reads in C, and comes in as fields in their order. {@code _messages.py} has the
 * other side of both. What is newer than JMS 1.1 is called only where the provider has it. No object that a peer
 * serialised is made.
 */
public final class Crossing implements ExceptionListener {
    private static final String COUNT = "JMSXDeliveryCount";
    private static final int AT_ONCE = 500;
    private static final long SIZE_AT_ONCE = 4 << 20;
    private final BlockingQueue<Object> events;
    private final long number;

    /**
     * An exception listener, from which Python takes what it was told: no Python runs in a thread of Java's.
     *
     * @param events gets pairs of the number and an exception
     * @param number of the connection
     */
    public Crossing(BlockingQueue<Object> events, long number) {
        this.events = events;
        this.number = number;
    }

    @Override
    public void onException(JMSException error) {
        events.add(new SimpleImmutableEntry<>(number, error));
    }

    /**
     * Makes a message and sends it.
     *
     * @param head kind, delivery mode, priority, time to live, delivery delay, correlation id, type, properties
     * @return timestamp and message id, with a space between
     */
    public static String send(
            Session session, MessageProducer producer, Destination target, Destination replyTo, byte[] head, byte[] body)
            throws JMSException {
        return sent(session, producer, target, replyTo, head, body, null, 0);
    }

    /**
     * Makes a message and sends it without waiting for the outcome.
     *
     * @param events gets a pair of the number, and of what `send` returns or an exception
     */
    public static void send(
            Session session, MessageProducer producer, Destination target, Destination replyTo, byte[] head, byte[] body,
            BlockingQueue<Object> events, long number)
            throws JMSException {
        sent(session, producer, target, replyTo, head, body, events, number);
    }

    private static String sent(
            Session session, MessageProducer producer, Destination target, Destination replyTo, byte[] head, byte[] body,
            BlockingQueue<Object> events, long number)
            throws JMSException {
        ByteBuffer fields = ByteBuffer.wrap(head);
        Message message = made(session, fields.get(), body);
        int mode = fields.get();
        int priority = fields.get();
        long timeToLive = fields.getLong();
        long delay = fields.getLong();
        String correlation = text(fields);
        if (correlation != null) {
            message.setJMSCorrelationID(correlation);
        }
        String type = text(fields);
        if (type != null) {
            message.setJMSType(type);
        }
        if (replyTo != null) {
            message.setJMSReplyTo(replyTo);
        }
        while (fields.hasRemaining()) {
            byte kind = fields.get();
            String name = text(fields);
            switch (kind) {
                case 'S' -> message.setStringProperty(name, text(fields));
                case '?' -> message.setBooleanProperty(name, fields.get() != 0);
                case 'b' -> message.setByteProperty(name, fields.get());
                case 'h' -> message.setShortProperty(name, fields.getShort());
                case 'i' -> message.setIntProperty(name, fields.getInt());
                case 'q' -> message.setLongProperty(name, fields.getLong());
                case 'f' -> message.setFloatProperty(name, fields.getFloat());
                default -> message.setDoubleProperty(name, fields.getDouble());
            }
        }
        if (delay > 0) {
            producer.setDeliveryDelay(delay);
        }
        try {
            if (events != null) {
                new Completion(events, number).send(producer, target, message, mode, priority, timeToLive);
                return null;
            }
            producer.send(target, message, mode, priority, timeToLive);
            return stamps(message);
        } finally {
            if (delay > 0) {
                producer.setDeliveryDelay(0);
            }
        }
    }

    static String stamps(Message message) throws JMSException {
        return message.getJMSTimestamp() + " " + (message.getJMSMessageID() == null ? "" : message.getJMSMessageID());
    }

    private static Message made(Session session, byte kind, byte[] body) throws JMSException {
        ByteBuffer values = ByteBuffer.wrap(body);
        switch (kind) {
            case 'T':
                return session.createTextMessage(new String(body, StandardCharsets.UTF_8));
            case 'B':
                BytesMessage bytes = session.createBytesMessage();
                bytes.writeBytes(body);
                return bytes;
            case 'M':
                MapMessage map = session.createMapMessage();
                while (values.hasRemaining()) {
                    map.setObject((String) value(values), value(values));
                }
                return map;
            case 'S':
                StreamMessage stream = session.createStreamMessage();
                while (values.hasRemaining()) {
                    stream.writeObject(value(values));
                }
                return stream;
            default:
                return session.createMessage();
        }
    }

    /** A value of a map or stream: a letter for its type, then the value. */
    private static Object value(ByteBuffer fields) {
        byte kind = fields.get();
        switch (kind) {
            case 'S':
                return text(fields);
            case '?':
                return fields.get() != 0;
            case 'b':
                return fields.get();
            case 'h':
                return fields.getShort();
            case 'i':
                return fields.getInt();
            case 'q':
                return fields.getLong();
            case 'f':
                return fields.getFloat();
            case 'd':
                return fields.getDouble();
            case 'c':
                return fields.getChar();
            default:
                byte[] octets = new byte[fields.getInt()];
                fields.get(octets);
                return octets;
        }
    }

    private static String text(ByteBuffer fields) {
        int length = fields.getInt();
        if (length < 0) {
            return null;
        }
        String found = new String(fields.array(), fields.position(), length, StandardCharsets.UTF_8);
        fields.position(fields.position() + length);
        return found;
    }

    /**
     * Receives a message.
     *
     * @param milliseconds how long it is waited for; 0: not at all
     * @param modern whether the provider has JMS 2.0
     * @return see {@link #read}; null: there is none; only an exception: there was one, which could not be read
     */
    public static Object[] receive(MessageConsumer consumer, long milliseconds, boolean modern) throws JMSException {
        Message message = milliseconds > 0 ? consumer.receive(milliseconds) : consumer.receiveNoWait();
        if (message == null) {
            return null;
        }
        try {
            return read(message, modern);
        } catch (JMSException | RuntimeException failed) {
            return new Object[] {failed};
        }
    }

    /** Some of what waits at a queue, or none; see {@link #read}. */
    public static Object[][] browse(Enumeration<?> waiting, boolean modern) throws JMSException {
        List<Object[]> found = new ArrayList<>();
        long size = 0;
        while (found.size() < AT_ONCE && size < SIZE_AT_ONCE && waiting.hasMoreElements()) {
            Object[] one = read((Message) waiting.nextElement(), modern);
            size += one[2] instanceof byte[] ? ((byte[]) one[2]).length : 0;
            found.add(one);
        }
        return found.toArray(new Object[0][]);
    }

    /** Message, head, body; the values of a map or stream in place of a body, as `send` takes them. */
    private static Object[] read(Message message, boolean modern) throws JMSException {
        String kind = "MESSAGE";
        byte[] body = new byte[0];
        if (message instanceof TextMessage) {
            kind = "TEXT";
            String text = ((TextMessage) message).getText();
            body = text == null ? body : text.getBytes(StandardCharsets.UTF_8);
        } else if (message instanceof BytesMessage) {
            kind = "BYTES";
            BytesMessage bytes = (BytesMessage) message;
            body = new byte[(int) bytes.getBodyLength()];
            if (body.length > 0) {
                bytes.reset();
                bytes.readBytes(body);
            }
        } else if (message instanceof MapMessage) {
            kind = "MAP";
            MapMessage map = (MapMessage) message;
            ByteArrayOutputStream values = new ByteArrayOutputStream();
            Enumeration<?> names = map.getMapNames();
            while (names.hasMoreElements()) {
                String name = (String) names.nextElement();
                write(new DataOutputStream(values), name);
                write(new DataOutputStream(values), map.getObject(name));
            }
            body = values.toByteArray();
        } else if (message instanceof StreamMessage) {
            kind = "STREAM";
            StreamMessage stream = (StreamMessage) message;
            ByteArrayOutputStream values = new ByteArrayOutputStream();
            stream.reset();
            try {
                while (true) {
                    write(new DataOutputStream(values), stream.readObject());
                }
            } catch (MessageEOFException atItsEnd) {
                body = values.toByteArray();
            }
        } else if (message instanceof ObjectMessage) {
            kind = "OBJECT";
        }
        long due = modern ? message.getJMSDeliveryTime() : 0;
        return new Object[] {message, head(message, kind, due).getBytes(StandardCharsets.UTF_8), body};
    }

    /** The letter of a value's type, and the value. */
    private static void write(DataOutputStream out, Object value) throws JMSException {
        try {
            if (value == null || value instanceof String) {
                byte[] text = value == null ? null : ((String) value).getBytes(StandardCharsets.UTF_8);
                out.writeByte('S');
                out.writeInt(text == null ? -1 : text.length);
                out.write(text == null ? new byte[0] : text);
            } else if (value instanceof Boolean) {
                out.writeByte('?');
                out.writeBoolean((Boolean) value);
            } else if (value instanceof Byte) {
                out.writeByte('b');
                out.writeByte((Byte) value);
            } else if (value instanceof Short) {
                out.writeByte('h');
                out.writeShort((Short) value);
            } else if (value instanceof Integer) {
                out.writeByte('i');
                out.writeInt((Integer) value);
            } else if (value instanceof Long) {
                out.writeByte('q');
                out.writeLong((Long) value);
            } else if (value instanceof Float) {
                out.writeByte('f');
                out.writeFloat((Float) value);
            } else if (value instanceof Double) {
                out.writeByte('d');
                out.writeDouble((Double) value);
            } else if (value instanceof Character) {
                out.writeByte('c');
                out.writeChar((Character) value);
            } else {
                byte[] octets = (byte[]) value;
                out.writeByte('x');
                out.writeInt(octets.length);
                out.write(octets);
            }
        } catch (IOException failed) {
            throw new JMSException(failed.toString());
        }
    }

    /** Names as of {@code JmsMessage}; a value of the types that JSON does not tell apart is a list of type and value. */
    private static String head(Message message, String kind, long due) throws JMSException {
        StringBuilder json = new StringBuilder(512).append('[');
        quote(json, kind).append(',');
        quote(json, message.getJMSMessageID()).append(',');
        quote(json, message.getJMSCorrelationID()).append(',');
        quote(json, message.getJMSType()).append(',');
        quote(json, mark(message.getJMSReplyTo())).append(',');
        json.append(message.getJMSDeliveryMode()).append(',').append(message.getJMSPriority()).append(',');
        json.append(message.getJMSTimestamp()).append(',').append(message.getJMSExpiration()).append(',');
        json.append(due).append(',');
        json.append(message.getJMSRedelivered()).append(",{");
        int count = 0;
        int start = json.length();
        Enumeration<?> names = message.getPropertyNames();
        while (names.hasMoreElements()) {
            String name = (String) names.nextElement();
            Object value = message.getObjectProperty(name);
            if (COUNT.equals(name)) {
                count = value instanceof Number ? ((Number) value).intValue() : 0;
                continue;
            }
            int end = json.length();
            quote(end > start ? json.append(',') : json, name).append(':');
            if (!value(json, value)) {
                json.setLength(end);
            }
        }
        return json.append("},").append(count).append(']').toString();
    }

    private static boolean value(StringBuilder json, Object value) {
        if (value instanceof String) {
            quote(json, (String) value);
        } else if (value instanceof Boolean || value instanceof Integer || value instanceof Double) {
            json.append(value);
        } else if (value instanceof Float) {
            json.append("[\"Float\",").append(((Float) value).doubleValue()).append(']');
        } else if (value instanceof Byte || value instanceof Short || value instanceof Long) {
            json.append("[\"").append(value.getClass().getSimpleName()).append("\",").append(value).append(']');
        } else {
            return false;
        }
        return true;
    }

    private static StringBuilder quote(StringBuilder json, String text) {
        if (text == null) {
            return json.append("null");
        }
        json.append('"');
        for (int at = 0; at < text.length(); at++) {
            char one = text.charAt(at);
            if (one == '"' || one == '\\') {
                json.append('\\').append(one);
            } else if (one < ' ') {
                json.append(String.format("\\u%04x", (int) one));
            } else {
                json.append(one);
            }
        }
        return json.append('"');
    }

    /** Tells destinations apart: what it is, and its name. */
    private static String mark(Destination destination) throws JMSException {
        if (destination == null) {
            return null;
        }
        boolean temporary = destination instanceof TemporaryQueue || destination instanceof TemporaryTopic;
        boolean queue = destination instanceof Queue;
        String name = queue ? ((Queue) destination).getQueueName() : ((Topic) destination).getTopicName();
        return (destination instanceof Topic ? "topic" : "") + (queue ? "queue" : "") + (temporary ? "?:" : ":") + name;
    }
}

/**
 * Puts the outcome of a send among the events: what `send` returns, or an exception.
 *
 * <p>A class of its own, and all that knows it, for JMS 1.1 has no such listener.
 */
final class Completion implements CompletionListener {
    private final BlockingQueue<Object> events;
    private final long number;

    Completion(BlockingQueue<Object> events, long number) {
        this.events = events;
        this.number = number;
    }

    void send(MessageProducer producer, Destination target, Message message, int mode, int priority, long timeToLive)
            throws JMSException {
        producer.send(target, message, mode, priority, timeToLive, this);
    }

    @Override
    public void onCompletion(Message message) {
        try {
            events.add(new SimpleImmutableEntry<>(number, Crossing.stamps(message)));
        } catch (JMSException failed) {
            onException(message, failed);
        }
    }

    @Override
    public void onException(Message message, Exception error) {
        events.add(new SimpleImmutableEntry<>(number, error));
    }
}
