package mtosi_jms.corba;

import java.util.Arrays;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.omg.CORBA.SystemException;
import org.omg.CORBA.portable.InputStream;
import org.omg.CORBA.portable.InvokeHandler;
import org.omg.CORBA.portable.OutputStream;
import org.omg.CORBA.portable.ResponseHandler;
import org.omg.PortableServer.POA;
import org.omg.PortableServer.Servant;

/**
 * A servant of any interfaces: it puts each call into a queue, and waits for its answer. No Python runs in a thread of
 * Java's.
 */
public final class Offered extends Servant implements InvokeHandler {
    private final BlockingQueue<Object> calls;
    private final SystemException late;
    private final long milliseconds;
    private final String[] interfaces;

    /**
     * A servant.
     *
     * @param calls gets lists of the operation, the stream of its arguments, what makes the reply, and the future for it
     * @param late what is thrown where no answer comes in time
     * @param milliseconds how long it waits
     * @param interfaces repository ids, that of the most derived interface first
     */
    public Offered(BlockingQueue<Object> calls, SystemException late, long milliseconds, String[] interfaces) {
        this.calls = calls;
        this.late = late;
        this.milliseconds = milliseconds;
        this.interfaces = interfaces;
    }

    @Override
    public OutputStream _invoke(String operation, InputStream in, ResponseHandler reply) {
        CompletableFuture<Object> answer = new CompletableFuture<>();
        answer.completeOnTimeout(late, milliseconds, TimeUnit.MILLISECONDS);
        calls.add(Arrays.asList(operation, in, reply, answer));
        Object found = answer.join();
        if (found instanceof SystemException) {
            throw (SystemException) found;
        }
        return (OutputStream) found;
    }

    @Override
    public String[] _all_interfaces(POA poa, byte[] id) {
        return interfaces.clone();
    }
}
