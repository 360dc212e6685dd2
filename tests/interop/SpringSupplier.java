import java.io.BufferedReader;
import java.io.InputStreamReader;
import javax.jms.ConnectionFactory;
import javax.jms.Message;
import org.springframework.jms.connection.UserCredentialsConnectionFactoryAdapter;
import org.springframework.jms.listener.DefaultMessageListenerContainer;
import org.springframework.jms.listener.SessionAwareMessageListener;

/** The supplier of JavaSupplier, called by Spring's listener container in a transaction of its own for each request. */
public final class SpringSupplier {
    private SpringSupplier() {}

    /** Arguments: class of the connection factory, URL, user, queue. The password is the first line of the standard input. */
    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        UserCredentialsConnectionFactoryAdapter login = new UserCredentialsConnectionFactoryAdapter();
        login.setTargetConnectionFactory(
            (ConnectionFactory) Class.forName(arguments[0]).getConstructor(String.class).newInstance(arguments[1]));
        login.setUsername(arguments[2]);
        login.setPassword(in.readLine());
        DefaultMessageListenerContainer container = new DefaultMessageListenerContainer();
        container.setConnectionFactory(login);
        container.setDestinationName(arguments[3]);
        container.setMessageSelector("MTOSI_msgType = 'REQUEST'");
        container.setSessionTransacted(true);
        SessionAwareMessageListener<Message> listener =
            (request, session) -> new JavaSupplier(session, "message-id", true).onMessage(request);
        container.setMessageListener(listener);
        container.afterPropertiesSet();
        container.start();
        System.out.println("ready");
        in.readLine();
        System.exit(0);
    }
}
