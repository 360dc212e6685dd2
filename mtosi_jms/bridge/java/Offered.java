package mtosi_jms.corba;

import org.omg.CORBA.portable.InputStream;
import org.omg.CORBA.portable.InvokeHandler;
import org.omg.CORBA.portable.OutputStream;
import org.omg.CORBA.portable.ResponseHandler;
import org.omg.PortableServer.POA;
import org.omg.PortableServer.Servant;

/**
 * A servant of any interfaces, whose calls go to a handler. Python can implement an interface of Java's, and not a class:
 * this is the class.
 */
public final class Offered extends Servant implements InvokeHandler {
    private final InvokeHandler handler;
    private final String[] interfaces;

    /**
     * A servant.
     *
     * @param handler answers calls
     * @param interfaces repository ids, that of the most derived interface first
     */
    public Offered(InvokeHandler handler, String[] interfaces) {
        this.handler = handler;
        this.interfaces = interfaces;
    }

    @Override
    public OutputStream _invoke(String operation, InputStream in, ResponseHandler reply) {
        return handler._invoke(operation, in, reply);
    }

    @Override
    public String[] _all_interfaces(POA poa, byte[] id) {
        return interfaces.clone();
    }
}
