package mtosi_jms.corba;

import java.util.Map;
import org.omg.CORBA.portable.InputStream;
import org.omg.CORBA.portable.InvokeHandler;
import org.omg.CORBA.portable.OutputStream;
import org.omg.CORBA.portable.ResponseHandler;
import org.omg.PortableServer.POA;
import org.omg.PortableServer.Servant;

/**
 * A servant of any interfaces, whose calls go to handlers. Python can implement an interface of Java's, and not a class:
 * this is the class.
 */
public final class Offered extends Servant implements InvokeHandler {
    private final InvokeHandler handler;
    private final Map<String, InvokeHandler> own;
    private final String[] interfaces;

    /**
     * A servant.
     *
     * @param handler answers calls, as the tie of an interface does
     * @param own what answers the calls of some operations instead, by their names
     * @param interfaces repository ids, that of the most derived interface first
     */
    public Offered(InvokeHandler handler, Map<String, InvokeHandler> own, String[] interfaces) {
        this.handler = handler;
        this.own = Map.copyOf(own);
        this.interfaces = interfaces;
    }

    @Override
    public OutputStream _invoke(String operation, InputStream in, ResponseHandler reply) {
        return own.getOrDefault(operation, handler)._invoke(operation, in, reply);
    }

    @Override
    public String[] _all_interfaces(POA poa, byte[] id) {
        return interfaces.clone();
    }
}
