import jakarta.jms.ConnectionFactory;
import jakarta.jws.Oneway;
import jakarta.jws.WebMethod;
import jakarta.jws.WebParam;
import jakarta.jws.WebResult;
import jakarta.jws.WebService;
import jakarta.xml.ws.BindingProvider;
import jakarta.xml.ws.WebFault;
import jakarta.xml.ws.soap.SOAPFaultException;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import javax.wsdl.Definition;
import javax.wsdl.factory.WSDLFactory;
import org.apache.cxf.endpoint.Server;
import org.apache.cxf.jaxws.JaxWsProxyFactoryBean;
import org.apache.cxf.jaxws.JaxWsServerFactoryBean;
import org.apache.cxf.transport.jms.ConnectionFactoryFeature;
import org.apache.cxf.transport.jms.JMSConstants;
import org.apache.cxf.transport.jms.JMSMessageHeadersType;
import org.apache.cxf.transport.jms.util.UserCredentialsConnectionFactoryAdapter;
import org.apache.cxf.wsdl11.ServiceWSDLBuilder;

/**
 * A JAX-WS service of a shop over JMS, and a client of it, in Apache CXF alone. It does what its standard input says, a
 * command a line, words parted by tabulators, and answers with a line of words and a line with a dot.
 */
public class CxfPeer {
    static final String NAMESPACE = "urn:example:shop";

    /** What both sides know of the service. */
    @WebService(name = "Shop", targetNamespace = NAMESPACE)
    public interface Shop {
        @WebMethod(action = "urn:example:shop/order")
        @WebResult(name = "note")
        String order(@WebParam(name = "item") String item, @WebParam(name = "note") String note) throws UnknownItem;

        @Oneway
        @WebMethod(action = "urn:example:shop/cancel")
        void cancel(@WebParam(name = "item") String item);
    }

    /** What the fault tells. */
    public static class Reason {
        public String item;
    }

    @WebFault(name = "unknownItem", targetNamespace = NAMESPACE)
    public static class UnknownItem extends Exception {
        private final Reason reason;

        public UnknownItem(String message, Reason reason) {
            super(message);
            this.reason = reason;
        }

        public Reason getFaultInfo() {
            return reason;
        }
    }

    /** Gives the note back; there is no `tea`. */
    @WebService(serviceName = "ShopService", portName = "ShopPort", targetNamespace = NAMESPACE, endpointInterface = "CxfPeer$Shop")
    public static class Counter implements Shop {
        static volatile String cancelled = "";

        @Override
        public String order(String item, String note) throws UnknownItem {
            if (item.equals("tea")) {
                Reason reason = new Reason();
                reason.item = item;
                throw new UnknownItem("there is no " + item, reason);
            }
            return note;
        }

        @Override
        public void cancel(String item) {
            cancelled = item;
        }
    }

    private final ConnectionFactoryFeature jms;

    CxfPeer(ConnectionFactory factory) {
        this.jms = new ConnectionFactoryFeature(factory);
    }

    /** Arguments: class of the connection factory, URL, user. The password is the first line of the standard input. */
    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        ConnectionFactory factory = (ConnectionFactory) Class.forName(arguments[0]).getConstructor(String.class).newInstance(arguments[1]);
        UserCredentialsConnectionFactoryAdapter login = new UserCredentialsConnectionFactoryAdapter();
        login.setTargetConnectionFactory(factory);
        login.setUsername(arguments[2]);
        login.setPassword(in.readLine());
        CxfPeer peer = new CxfPeer(login);
        System.out.println(".");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(peer.carriedOut(line.split("\t", -1)) + "\n.");
        }
        System.exit(0); // what hangs in a broker's client must not outlive the tests
    }

    private String carriedOut(String[] words) {
        try {
            switch (words[0]) {
                case "serve": // address, file for the WSDL
                    serve(words[1], Path.of(words[2]));
                    return "serves";
                case "order": // address, item, file of the note, file for what is answered, versions of binding and SOAP or none
                    String note = shop(words[1], words[5], words[6]).order(words[2], Files.readString(Path.of(words[3])));
                    Files.writeString(Path.of(words[4]), note);
                    return "ordered";
                case "cancel": // address, item
                    shop(words[1], "", "").cancel(words[2]);
                    return "sent";
                case "cancelled": // of its server
                    return Counter.cancelled;
                default:
                    return "error\tunknown command";
            }
        } catch (UnknownItem fault) {
            return "fault\t" + fault.getMessage() + "\t" + fault.getFaultInfo().item;
        } catch (SOAPFaultException fault) {
            return "fault\t" + fault.getFault().getFaultCodeAsQName() + "\t" + fault.getMessage();
        } catch (Exception error) {
            error.printStackTrace();
            return "error\t" + error.getClass().getSimpleName() + "\t" + String.valueOf(error.getMessage()).replaceAll("\\s", " ");
        }
    }

    private void serve(String address, Path wsdl) throws Exception {
        JaxWsServerFactoryBean factory = new JaxWsServerFactoryBean();
        factory.setServiceBean(new Counter());
        factory.setAddress(address);
        factory.getFeatures().add(jms);
        Server server = factory.create();
        Definition made = new ServiceWSDLBuilder(factory.getBus(), server.getEndpoint().getService().getServiceInfos()).build();
        try (OutputStream out = Files.newOutputStream(wsdl)) {
            WSDLFactory.newInstance().newWSDLWriter().writeWSDL(made, out);
        }
    }

    private Shop shop(String address, String version, String soap) {
        JaxWsProxyFactoryBean factory = new JaxWsProxyFactoryBean();
        factory.setServiceClass(Shop.class);
        factory.setAddress(address);
        factory.getFeatures().add(jms);
        if (soap.equals("1.2")) {
            factory.setBindingId("http://schemas.xmlsoap.org/wsdl/soap12/");
        }
        Shop shop = factory.create(Shop.class);
        if (!version.isEmpty()) {
            JMSMessageHeadersType headers = new JMSMessageHeadersType();
            headers.setSOAPJMSBindingVersion(version);
            ((BindingProvider) shop).getRequestContext().put(JMSConstants.JMS_CLIENT_REQUEST_HEADERS, headers);
        }
        return shop;
    }
}
