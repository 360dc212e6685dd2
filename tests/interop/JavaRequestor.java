import java.util.UUID;
import javax.jms.*;
import org.w3c.dom.Document;
import org.w3c.dom.NodeList;

/** A requestor in Java alone: asks, and tells of each reply what a Java program reads in it. */
final class JavaRequestor {
    interface Teller {
        void tell(String... words);
    }

    private final Connection connection;
    private final Teller teller;

    JavaRequestor(Connection connection, Teller teller) {
        this.connection = connection;
        this.teller = teller;
    }

    /**
     * Sends a request and waits for its replies, the last of which says so.
     *
     * @param pairing "all": whatever comes to a temporary queue of this request; "message-id", "correlation-id": replies
     *     with the one or the other of this request in JMSCorrelationID, chosen by a selector
     */
    void ask(String queue, String text, String pairing, long patience) throws Exception {
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        try {
            TemporaryQueue replies = session.createTemporaryQueue();
            TextMessage request = session.createTextMessage(text);
            String own = UUID.randomUUID().toString();
            request.setJMSReplyTo(replies);
            request.setStringProperty("MTOSI_msgType", "REQUEST");
            if (pairing.equals("correlation-id")) {
                request.setJMSCorrelationID(own);
            }
            session.createProducer(session.createQueue(queue)).send(request);
            String wanted = pairing.equals("message-id") ? request.getJMSMessageID() : own;
            MessageConsumer consumer = session.createConsumer(replies, pairing.equals("all") ? null : "JMSCorrelationID = '" + wanted + "'");
            for (boolean more = true; more; ) {
                TextMessage reply = (TextMessage) consumer.receive(patience);
                if (reply == null) {
                    teller.tell("none");
                    return;
                }
                more = told(reply);
            }
        } finally {
            session.close();
        }
    }

    /** Tells of one reply; whether more are to come. */
    private boolean told(TextMessage reply) throws Exception {
        Document document = Mtosi.parsed(reply);
        NodeList values = document.getElementsByTagNameNS("http://www.tmforum.org/mtop/fmw/xsd/nam/v1", "value");
        StringBuilder names = new StringBuilder();
        for (int at = 1; at < values.getLength(); at += 2) {
            names.append(at == 1 ? "" : " ").append(values.item(at).getTextContent());
        }
        NodeList reasons = document.getElementsByTagName("faultstring");
        boolean batch = reply.propertyExists("MTOSI_batchSequenceNumber");
        teller.tell("reply", reply.getStringProperty("MTOSI_msgType"), Mtosi.operation(document), Mtosi.field(document, "correlationId"),
            batch ? String.valueOf(reply.getIntProperty("MTOSI_batchSequenceNumber")) : "",
            batch ? String.valueOf(reply.getBooleanProperty("MTOSI_batchSequenceEndOfReply")) : "",
            names.toString(), reasons.getLength() == 0 ? "" : reasons.item(0).getTextContent());
        return batch && !reply.getBooleanProperty("MTOSI_batchSequenceEndOfReply");
    }
}
