import jakarta.jms.ConnectionFactory;
import jakarta.jws.WebParam;
import jakarta.jws.WebResult;
import jakarta.xml.bind.JAXBContext;
import jakarta.xml.bind.JAXBElement;
import jakarta.xml.ws.Holder;
import jakarta.xml.ws.WebFault;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import javax.xml.namespace.QName;
import javax.xml.transform.stream.StreamSource;
import org.apache.cxf.jaxws.JaxWsProxyFactoryBean;
import org.apache.cxf.jaxws.JaxWsServerFactoryBean;
import org.apache.cxf.transport.jms.ConnectionFactoryFeature;
import org.apache.cxf.transport.jms.util.UserCredentialsConnectionFactoryAdapter;
import tmf854.HeaderT;
import tmf854.MsgTypeT;
import tmf854.ObjectFactory;

/**
 * Client and server of every service of MTOSI 1.1 over JMS, in Apache CXF alone, with what `wsdl2java` makes of the
 * release. It does what its standard input says, a command a line, words parted by tabulators, and answers with a line
 * of words and a line with a dot.
 *
 * What is sent and what has come are documents of a folder: of a client `header.xml` and `body.xml`, and
 * `header.got.xml` and `body.got.xml`. A server answers its calls, numbered from 1, by `1.xml` or `1.fault.xml`, with
 * the fields of `1.header.xml` where there is one; it writes `1.got.xml`.
 */
public class CxfRelease1 {
    static final String NAMESPACE = "tmf854.v1";

    private final ConnectionFactoryFeature jms;
    private final Path folder;
    private final JAXBContext binding;
    private final Map<String, Object> ports = new HashMap<>();
    private final AtomicInteger calls = new AtomicInteger();
    private final BlockingQueue<String> called = new LinkedBlockingQueue<>();

    CxfRelease1(ConnectionFactory factory, Path folder) throws Exception {
        this.jms = new ConnectionFactoryFeature(factory);
        this.folder = folder;
        this.binding = JAXBContext.newInstance(ObjectFactory.class);
    }

    /** Arguments: folder, class of the connection factory, URL, user. The password is the first line of the standard input. */
    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        ConnectionFactory factory = (ConnectionFactory) Class.forName(arguments[1]).getConstructor(String.class).newInstance(arguments[2]);
        UserCredentialsConnectionFactoryAdapter login = new UserCredentialsConnectionFactoryAdapter();
        login.setTargetConnectionFactory(factory);
        login.setUsername(arguments[3]);
        login.setPassword(in.readLine());
        CxfRelease1 peer = new CxfRelease1(login, Path.of(arguments[0]));
        System.out.println(".");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(peer.carriedOut(line.split("\t", -1)) + "\n.");
        }
        System.exit(0); // what hangs in a broker's client must not outlive the tests
    }

    private String carriedOut(String[] words) {
        try {
            switch (words[0]) {
                case "serve": // service, address
                    serve(Class.forName("tmf854.ws." + words[1]), words[2]);
                    return "serves";
                case "called": // the elements that its server was asked with; the next call is the first again
                    List<String> names = new ArrayList<>();
                    names.add(called.poll(60, TimeUnit.SECONDS));
                    called.drainTo(names);
                    calls.set(0);
                    return String.join("\t", names);
                case "call": // service, address, operation
                    return call(Class.forName("tmf854.ws." + words[1]), words[2], words[3]);
                default:
                    return "error\tunknown command";
            }
        } catch (Throwable error) {
            error.printStackTrace();
            return "error\t" + error.getClass().getSimpleName() + "\t" + String.valueOf(error.getMessage()).replaceAll("\\s", " ");
        }
    }

    private String call(Class<?> service, String address, String operation) throws Throwable {
        Object port = ports.computeIfAbsent(service.getName() + address, key -> {
            JaxWsProxyFactoryBean factory = new JaxWsProxyFactoryBean();
            factory.setServiceClass(service);
            factory.setAddress(address);
            factory.getFeatures().add(jms);
            return factory.create();
        });
        Method method = Arrays.stream(service.getMethods()).filter(one -> one.getName().equals(operation)).findAny().orElseThrow();
        HeaderT asked = read("header.xml", HeaderT.class);
        Holder<HeaderT> header = new Holder<>(asked);
        Object[] given = new Object[method.getParameterCount()];
        for (int index = 0; index < given.length; index++) {
            Class<?> type = method.getParameterTypes()[index];
            given[index] = type == Holder.class ? header : type == HeaderT.class ? asked : read("body.xml", type);
        }
        try {
            Object answer = method.invoke(port, given);
            if (answer == null) {
                return "sent";
            }
            write("header.got.xml", "header", header.value);
            write("body.got.xml", method.getAnnotation(WebResult.class).name(), answer);
            return "answered";
        } catch (InvocationTargetException wrapped) {
            Throwable fault = wrapped.getCause();
            WebFault named = fault.getClass().getAnnotation(WebFault.class);
            if (named == null) {
                throw fault;
            }
            write("body.got.xml", named.name(), fault.getClass().getMethod("getFaultInfo").invoke(fault));
            return "fault\t" + named.name() + "\t" + fault.getMessage();
        }
    }

    private void serve(Class<?> service, String address) {
        JaxWsServerFactoryBean factory = new JaxWsServerFactoryBean();
        factory.setServiceClass(service);
        factory.setServiceBean(Proxy.newProxyInstance(service.getClassLoader(), new Class<?>[] {service},
                (self, method, given) -> method.getDeclaringClass() == Object.class ? method.invoke(this, given) : answer(method, given)));
        factory.setAddress(address);
        factory.getFeatures().add(jms);
        factory.create();
    }

    @SuppressWarnings("unchecked")
    private Object answer(Method method, Object[] given) throws Throwable {
        String number = String.valueOf(calls.incrementAndGet());
        String element = "";
        for (int index = 0; index < given.length; index++) {
            if (given[index] instanceof Holder) {
                Holder<HeaderT> header = (Holder<HeaderT>) given[index];
                header.value = replied(header.value, number);
            } else if (!(given[index] instanceof HeaderT)) {
                element = method.getParameters()[index].getAnnotation(WebParam.class).name();
                write(number + ".got.xml", element, given[index]);
            }
        }
        called.add(element);
        if (Files.exists(folder.resolve(number + ".fault.xml"))) {
            Class<?> fault = method.getExceptionTypes()[0];
            Class<?> detail = fault.getMethod("getFaultInfo").getReturnType();
            throw (Throwable) fault.getConstructor(String.class, detail).newInstance("refused", read(number + ".fault.xml", detail));
        }
        return method.getReturnType() == void.class ? null : read(number + ".xml", method.getReturnType());
    }

    /** The header of an answer. */
    private HeaderT replied(HeaderT asked, String number) throws Exception {
        boolean written = Files.exists(folder.resolve(number + ".header.xml"));
        HeaderT header = written ? read(number + ".header.xml", HeaderT.class) : new HeaderT();
        header.setActivityName(asked.getActivityName());
        header.setMsgName(asked.getActivityName() + "Response");
        header.setMsgType(MsgTypeT.RESPONSE);
        header.setSenderURI(asked.getDestinationURI());
        header.setDestinationURI(asked.getSenderURI());
        header.setCorrelationId(asked.getCorrelationId());
        header.setCommunicationPattern(asked.getCommunicationPattern());
        header.setCommunicationStyle(asked.getCommunicationStyle());
        return header;
    }

    private <T> T read(String name, Class<T> type) throws Exception {
        return binding.createUnmarshaller().unmarshal(new StreamSource(folder.resolve(name).toFile()), type).getValue();
    }

    @SuppressWarnings("unchecked")
    private <T> void write(String name, String element, T value) throws Exception {
        JAXBElement<T> root = new JAXBElement<>(new QName(NAMESPACE, element), (Class<T>) value.getClass(), value);
        binding.createMarshaller().marshal(root, folder.resolve(name).toFile());
    }
}
