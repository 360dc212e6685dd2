package mtosi_jms.corba;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/**
 * What an object of any interface does when it is called: it puts the call into a queue, and waits for an answer. No Python
 * runs in a thread of Java's.
 */
public final class Call implements InvocationHandler {
    private final BlockingQueue<Object> calls;
    private final Throwable late;
    private final long milliseconds;

    /**
     * A handler.
     *
     * @param calls gets lists of the method, its arguments and the future for the answer
     * @param late what is thrown where no answer comes in time
     * @param milliseconds how long it waits
     */
    public Call(BlockingQueue<Object> calls, Throwable late, long milliseconds) {
        this.calls = calls;
        this.late = late;
        this.milliseconds = milliseconds;
    }

    @Override
    public Object invoke(Object self, Method method, Object[] arguments) throws Throwable {
        CompletableFuture<Object> answer = new CompletableFuture<>();
        answer.completeOnTimeout(late, milliseconds, TimeUnit.MILLISECONDS);
        calls.add(Arrays.asList(method, arguments, answer));
        Object found = answer.join();
        if (found instanceof Throwable) {
            throw (Throwable) found;
        }
        return found;
    }
}
