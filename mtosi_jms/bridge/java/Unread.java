package mtosi_jms.corba;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.util.Arrays;
import org.omg.PortableInterceptor.ServerRequestInfo;

/**
 * What a server interceptor does for one of our objects: requests that the ORB cannot read go where the object's calls go.
 * Failures by TRANSIENT are ours.
 */
public final class Unread implements InvocationHandler {
    private static final String TRANSIENT = "IDL:omg.org/CORBA/TRANSIENT:1.0";
    private final byte[] oid;
    private final Call call;

    /**
     * A handler.
     *
     * @param oid id of the object
     * @param call takes the requests, as calls of {@code send_exception}
     */
    public Unread(byte[] oid, Call call) {
        this.oid = oid;
        this.call = call;
    }

    @Override
    public Object invoke(Object self, Method method, Object[] arguments) throws Throwable {
        if (!method.getName().equals("send_exception")) {
            return method.getName(); // of the others, only the one that asks for a name returns anything
        }
        ServerRequestInfo info = (ServerRequestInfo) arguments[0];
        boolean isRead = !Arrays.equals(info.object_id(), oid) || TRANSIENT.equals(info.sending_exception().type().id());
        return isRead ? null : call.invoke(self, method, arguments);
    }
}
