package mtosi_jms.corba;

import java.io.IOException;
import java.net.Socket;
import java.util.Set;
import org.jacorb.orb.factory.SocketFactory;
import org.omg.CORBA.NO_PERMISSION;

/** A socket factory of the ORB that refuses hosts outside a set, wherever a reference came from. */
public final class Guarded implements SocketFactory {
    private final SocketFactory factory;
    private final Set<String> allowed;

    /**
     * A factory.
     *
     * @param factory makes the sockets
     * @param allowed hosts, by name and by address
     */
    public Guarded(SocketFactory factory, Set<String> allowed) {
        this.factory = factory;
        this.allowed = allowed;
    }

    @Override
    public Socket createSocket(String host, int port) throws IOException {
        return factory.createSocket(checked(host), port);
    }

    @Override
    public Socket createSocket(String host, int port, int milliseconds) throws IOException {
        return factory.createSocket(checked(host), port, milliseconds);
    }

    @Override
    public boolean isSSL(Socket socket) {
        return factory.isSSL(socket);
    }

    private String checked(String host) {
        if (!allowed.contains(host)) {
            throw new NO_PERMISSION("the ORB may not connect to this host");
        }
        return host;
    }
}
