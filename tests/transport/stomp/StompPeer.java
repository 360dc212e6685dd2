import javax.jms.*;
import org.apache.activemq.ActiveMQConnectionFactory;

/** A JMS client at the other end: tells what it gets from STOMP, answers it, and asks in its turn. */
public class StompPeer {
    public static void main(String[] arguments) throws Exception {
        Connection connection = new ActiveMQConnectionFactory(arguments[1], arguments[2], arguments[0]).createConnection();
        connection.start();
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer asked = session.createConsumer(session.createQueue(arguments[3]));
        Message message = asked.receive(20000);
        System.out.println("kind " + (message instanceof TextMessage ? "text" : message instanceof BytesMessage ? "bytes" : "other"));
        System.out.println("text " + escaped(((TextMessage) message).getText()));
        System.out.println("mode " + message.getJMSDeliveryMode() + " priority " + message.getJMSPriority());
        System.out.println("correlation " + message.getJMSCorrelationID() + " type " + message.getJMSType());
        System.out.println("size " + message.getIntProperty("MTOSI_requestedBatchSize") + " end " + message.getBooleanProperty("MTOSI_batchSequenceEndOfReply"));
        System.out.println("name " + escaped(message.getStringProperty("name")));
        TextMessage answer = session.createTextMessage("<a>gr\u00f6\u00dfe \ud83d\ude00</a>");
        answer.setIntProperty("MTOSI_batchSequenceNumber", 7);
        answer.setBooleanProperty("MTOSI_batchSequenceEndOfReply", true);
        answer.setStringProperty("name", "gr\u00f6\u00dfe");
        answer.setJMSCorrelationID(message.getJMSMessageID());
        session.createProducer(message.getJMSReplyTo()).send(answer);
        TemporaryQueue own = session.createTemporaryQueue();
        TextMessage question = session.createTextMessage("<question/>");
        question.setJMSReplyTo(own);
        session.createProducer(session.createQueue(arguments[4])).send(question);
        TextMessage reply = (TextMessage) session.createConsumer(own).receive(20000);
        System.out.println("reply " + reply.getText().length() + " " + reply.getText().charAt(0));
        Message raw = asked.receive(20000);
        System.out.println("raw " + (raw instanceof BytesMessage ? "bytes " + ((BytesMessage) raw).getBodyLength() : "other"));
        connection.close();
    }

    private static String escaped(String text) {
        StringBuilder shown = new StringBuilder();
        text.chars().forEach(unit -> shown.append(unit < 128 ? String.valueOf((char) unit) : String.format("\\u%04x", unit)));
        return shown.toString();
    }
}
