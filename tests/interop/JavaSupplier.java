import java.util.ArrayList;
import java.util.List;
import javax.jms.*;
import org.w3c.dom.Document;
import org.w3c.dom.NodeList;

/** A supplier of five managed elements, in Java alone: SimpleResponse, MultipleBatchResponse and a fault. */
final class JavaSupplier implements MessageListener {
    static final int ELEMENTS = 5;
    final Session session;
    MessageConsumer consumer;
    private final MessageProducer producer;
    private final String pairing;
    private final boolean copies;

    /**
     * @param pairing what JMSCorrelationID of a reply has: "message-id" or "correlation-id" of the request, or "none"
     * @param copies whether the header's correlationId is copied, as MTOSI wants it
     */
    JavaSupplier(Connection connection, String queue, String pairing, boolean copies) throws JMSException {
        this(connection.createSession(false, Session.AUTO_ACKNOWLEDGE), pairing, copies);
        consumer = session.createConsumer(session.createQueue(queue));
        consumer.setMessageListener(this);
    }

    /** One that is called with its requests; a session of the caller's. */
    JavaSupplier(Session session, String pairing, boolean copies) throws JMSException {
        this.session = session;
        this.producer = session.createProducer(null);
        this.pairing = pairing;
        this.copies = copies;
    }

    @Override
    public void onMessage(Message request) {
        try {
            answer(request);
        } catch (Exception error) {
            error.printStackTrace();
        }
    }

    private void answer(Message request) throws Exception {
        Document document = Mtosi.parsed(request);
        if (Mtosi.operation(document).equals("getManagedElementRequest")) {
            one(request, document);
            return;
        }
        int size = request.propertyExists("MTOSI_requestedBatchSize") ? request.getIntProperty("MTOSI_requestedBatchSize") : 0;
        List<String> elements = new ArrayList<>();
        for (int number = 1; number <= ELEMENTS; number++) {
            elements.add(element("NE-" + number));
        }
        int step = size == 0 ? ELEMENTS : size;
        for (int at = 0, number = 1; at < ELEMENTS; at += step, number++) {
            boolean last = at + step >= ELEMENTS;
            String body = "<m:getAllManagedElementsResponse xmlns:m='" + Mtosi.MER + "'><m:meList>"
                + String.join("", elements.subList(at, Math.min(at + step, ELEMENTS))) + "</m:meList></m:getAllManagedElementsResponse>";
            String fields = Mtosi.element("communicationPattern", "MultipleBatchResponse") + Mtosi.element("communicationStyle", "MSG")
                + Mtosi.element("requestedBatchSize", size) + Mtosi.element("batchSequenceNumber", number) + Mtosi.element("batchSequenceEndOfReply", last);
            TextMessage reply = reply(document, "getAllManagedElements", "Response", fields, body);
            reply.setIntProperty("MTOSI_requestedBatchSize", size);
            reply.setIntProperty("MTOSI_batchSequenceNumber", number);
            reply.setBooleanProperty("MTOSI_batchSequenceEndOfReply", last);
            send(request, reply);
        }
    }

    private void one(Message request, Document document) throws Exception {
        NodeList values = document.getElementsByTagNameNS("http://www.tmforum.org/mtop/fmw/xsd/nam/v1", "value");
        String name = values.item(values.getLength() - 1).getTextContent();
        String fields = Mtosi.element("communicationPattern", "SimpleResponse") + Mtosi.element("communicationStyle", "MSG");
        if (name.matches("NE-[1-5]")) {
            String body = "<m:getManagedElementResponse xmlns:m='" + Mtosi.MER + "'>" + element(name).replace("e:me", "m:me") + "</m:getManagedElementResponse>";
            send(request, reply(document, "getManagedElement", "Response", fields, body));
            return;
        }
        String header = "<h:header xmlns:h='" + Mtosi.HDR + "'>" + header(document, "getManagedElement", "ERROR", fields) + "</h:header>";
        String fault = "<soap:Fault><faultcode>soap:Server</faultcode><faultstring>nobody \ud83d\ude00</faultstring><detail><m:getManagedElementException xmlns:m='"
            + Mtosi.MER + "'><f:entityNotFound xmlns:f='http://www.tmforum.org/mtop/fmw/xsd/msg/v1'>" + header
            + "<f:reason>there is no " + name + "</f:reason></f:entityNotFound></m:getManagedElementException></detail></soap:Fault>";
        TextMessage reply = session.createTextMessage(Mtosi.envelope("", fault).replaceFirst("<soap:Header>.*</soap:Header>", ""));
        Mtosi.properties(reply, "ERROR", "getManagedElement", "FAILURE");
        send(request, reply);
    }

    private TextMessage reply(Document request, String activity, String suffix, String fields, String body) throws JMSException {
        TextMessage reply = session.createTextMessage(Mtosi.envelope(header(request, activity, "RESPONSE", fields), body));
        Mtosi.properties(reply, "RESPONSE", activity, "SUCCESS");
        reply.setStringProperty("MTOSI_msgName", activity + suffix);
        return reply;
    }

    private String header(Document request, String activity, String kind, String fields) {
        return Mtosi.element("activityName", activity) + Mtosi.element("msgName", activity + (kind.equals("ERROR") ? "Exception" : "Response"))
            + Mtosi.element("msgType", kind) + Mtosi.element("senderURI", "jms/JavaOS") + Mtosi.element("destinationURI", Mtosi.field(request, "senderURI"))
            + Mtosi.element("activityStatus", kind.equals("ERROR") ? "FAILURE" : "SUCCESS")
            + Mtosi.element("correlationId", copies ? Mtosi.field(request, "correlationId") : null) + fields;
    }

    private void send(Message request, TextMessage reply) throws JMSException {
        if (!pairing.equals("none")) {
            reply.setJMSCorrelationID(pairing.equals("message-id") ? request.getJMSMessageID() : request.getJMSCorrelationID());
        }
        producer.send(request.getJMSReplyTo(), reply);
    }

    private static String element(String name) {
        return "<e:me xmlns:e='http://www.tmforum.org/mtop/nrf/xsd/me/v1'><c:name xmlns:c='http://www.tmforum.org/mtop/fmw/xsd/coi/v1' "
            + "xmlns:n='http://www.tmforum.org/mtop/fmw/xsd/nam/v1'><n:rdn><n:type>MD</n:type><n:value>EMS1</n:value></n:rdn>"
            + "<n:rdn><n:type>ME</n:type><n:value>" + name + "</n:value></n:rdn></c:name><e:location>Zaal \u20ac \ud83d\ude00</e:location></e:me>";
    }
}
