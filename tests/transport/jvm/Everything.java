import javax.jms.Queue;
import javax.jms.TemporaryQueue;
import javax.jms.TemporaryTopic;
import org.apache.activemq.artemis.jms.client.ActiveMQTopic;

/** A topic whose class implements all interfaces of destinations, as WebLogic's does. */
public class Everything extends ActiveMQTopic implements Queue, TemporaryQueue, TemporaryTopic {
    public Everything() {
    }

    public Everything(String name) {
        super(name);
    }

    @Override
    public String getQueueName() {
        return getTopicName();
    }

    public boolean isTopic() {
        return true;
    }
}
