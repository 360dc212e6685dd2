import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.omg.CORBA.Any;
import org.omg.CORBA.BooleanHolder;
import org.omg.CORBA.IntHolder;
import org.omg.CORBA.ORB;
import org.omg.CORBA.TRANSIENT;
import org.omg.CosEventChannelAdmin.AlreadyConnected;
import org.omg.CosNotification.EventHeader;
import org.omg.CosNotification.EventType;
import org.omg.CosNotification.FixedEventHeader;
import org.omg.CosNotification.Property;
import org.omg.CosNotification.StructuredEvent;
import org.omg.CosNotifyChannelAdmin.ClientType;
import org.omg.PortableServer.POA;
import org.omg.PortableServer.POAHelper;
import org.omg.PortableServer.Servant;

/**
 * An event channel whose proxies acknowledge (CosNotifyCommAck, CosNotifyChannelAdminAck). It does what the lines of its
 * standard input say, and writes what it is called for: of a sequence the numbers of its events, with a plus between.
 */
public class AckChannel {
    interface Work {
        Object call(String name, Object[] arguments) throws Exception;
    }

    static ORB orb;
    static POA poa;
    /** What is connected, and its proxy: "structured push", "sequence pull". */
    static Object peer;
    static String kind;
    static final Map<Integer, StructuredEvent[]> kept = new TreeMap<>();
    static final List<Integer> offered = new ArrayList<>();
    static int next, deaf, silent, refusing;

    static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    static Object activate(String name, Work work) throws Exception {
        Class<?> operations = Class.forName("org.omg." + name + "Operations");
        Object made = Proxy.newProxyInstance(AckChannel.class.getClassLoader(), new Class<?>[] {operations},
            (self, method, arguments) -> work.call(method.getName(), arguments));
        Object tie = Class.forName("org.omg." + name + "POATie").getConstructor(operations, POA.class)
            .newInstance(made, poa);
        return narrow(name, poa.servant_to_reference((Servant) tie));
    }

    static Object narrow(String name, Object reference) throws Exception {
        return Class.forName("org.omg." + name + "Helper").getMethod("narrow", org.omg.CORBA.Object.class)
            .invoke(null, reference);
    }

    static Object admin(String name, Object[] arguments) throws Exception {
        if (!name.startsWith("obtain_notification_"))
            return null;
        boolean pushes = name.contains("_push_"), out = name.endsWith("_supplier");
        boolean grouped = ((ClientType) arguments[0]).value() == ClientType._SEQUENCE_EVENT;
        ((IntHolder) arguments[1]).value = 1;
        peer = null;
        kept.clear();
        offered.clear();
        next = 0;
        kind = (grouped ? "Sequence" : "Structured") + "Proxy" + (pushes ? "Push" : "Pull")
            + (out ? "Supplier" : "Consumer");
        Property[][] qos = {new Property[0]};
        return activate(out ? "CosNotifyChannelAdminAck." + kind + "Ack" : "CosNotifyChannelAdmin." + kind,
            (called, given) -> proxy(called, given, qos));
    }

    static synchronized Object proxy(String name, Object[] given, Property[][] qos) throws Exception {
        if (name.equals("get_qos"))
            return qos[0];
        if (name.equals("set_qos"))
            qos[0] = (Property[]) given[0];
        if (name.startsWith("connect_")) {
            if (peer != null)
                throw new AlreadyConnected();
            peer = given[0];
        }
        if (name.startsWith("disconnect_"))
            say("disconnected");
        if (name.equals("acknowledge")) {
            if (deaf-- > 0) {
                say("deaf");
                throw new TRANSIENT("deaf");
            }
            List<String> told = new ArrayList<>();
            for (int number : (int[]) given[0]) {
                kept.remove(number);
                told.add("" + number);
            }
            say("acknowledged " + String.join(" ", told));
        }
        if (name.equals("push_structured_event"))
            pushed(new StructuredEvent[] {(StructuredEvent) given[0]});
        if (name.equals("push_structured_events"))
            pushed((StructuredEvent[]) given[0]);
        if (name.startsWith("try_pull_")) {
            BooleanHolder has = (BooleanHolder) given[given.length - 1];
            has.value = !offered.isEmpty();
            StructuredEvent[] events = has.value ? kept.get(offered.remove(0)) : new StructuredEvent[] {event(0)};
            if (name.endsWith("_events"))
                return has.value ? events : new StructuredEvent[0];
            return events[0];
        }
        return null;
    }

    static void pushed(StructuredEvent[] events) throws Exception {
        if (refusing-- > 0) {
            say("refused " + shown(events));
            throw new TRANSIENT("not now");
        }
        say("pushed " + shown(events));
        if (silent-- <= 0)
            acknowledge(new int[] {number(events[0])});
    }

    static void acknowledge(int[] numbers) throws Exception {
        String name = "CosNotifyCommAck." + kind.replace("Proxy", "").replace("Consumer", "Supplier") + "Ack";
        Object supplier = narrow(name, peer);
        Class.forName("org.omg." + name + "Operations").getMethod("acknowledge", int[].class).invoke(supplier, numbers);
    }

    static String shown(StructuredEvent[] events) {
        List<String> told = new ArrayList<>();
        for (StructuredEvent event : events)
            for (Property one : event.filterable_data)
                if (one.name.equals("n"))
                    told.add("" + one.value.extract_long());
        return number(events[0]) + " " + String.join("+", told);
    }

    static int number(StructuredEvent event) {
        for (Property one : event.header.variable_header)
            if (one.name.equals("SequenceNumber"))
                return one.value.extract_long();
        return -1;
    }

    static Property property(String name, int value) {
        Any any = orb.create_any();
        any.insert_long(value);
        return new Property(name, any);
    }

    static StructuredEvent event(int n) {
        FixedEventHeader fixed = new FixedEventHeader(new EventType("d", "t"), "e");
        Property[] data = {property("n", n)};
        if (n < 0) {
            Any deep = orb.create_any();
            deep.insert_long(1);
            for (int depth = 0; depth < 70; depth++) {
                Any outer = orb.create_any();
                outer.insert_any(deep);
                deep = outer;
            }
            data = new Property[] {data[0], new Property("deep", deep)};
        }
        return new StructuredEvent(new EventHeader(fixed, new Property[0]), data, orb.create_any());
    }

    /** Gives events to what is connected to a proxy supplier. */
    static void give(int number) throws Exception {
        StructuredEvent[] events = kept.get(number);
        if (kind.contains("Pull")) {
            synchronized (AckChannel.class) {
                offered.add(number);
            }
            return;
        }
        boolean grouped = kind.startsWith("Sequence");
        Class<?> consumer = Class.forName("org.omg.CosNotifyComm." + (grouped ? "Sequence" : "Structured")
            + "PushConsumerOperations");
        try {
            if (grouped)
                consumer.getMethod("push_structured_events", StructuredEvent[].class).invoke(peer, (Object) events);
            else
                consumer.getMethod("push_structured_event", StructuredEvent.class).invoke(peer, events[0]);
            say("taken " + number);
        } catch (java.lang.reflect.InvocationTargetException error) {
            say("not taken " + number + " " + error.getCause().getClass().getSimpleName());
        }
    }

    /** Pulls from what is connected to a proxy consumer. */
    static void pull() throws Exception {
        BooleanHolder has = new BooleanHolder();
        boolean grouped = kind.startsWith("Sequence");
        Class<?> supplier = Class.forName("org.omg.CosNotifyComm." + (grouped ? "Sequence" : "Structured")
            + "PullSupplierOperations");
        StructuredEvent[] events = grouped
            ? (StructuredEvent[]) supplier.getMethod("try_pull_structured_events", int.class, BooleanHolder.class)
                .invoke(peer, 2, has)
            : new StructuredEvent[] {(StructuredEvent) supplier
                .getMethod("try_pull_structured_event", BooleanHolder.class).invoke(peer, has)};
        say(has.value ? "pulled " + shown(events) : "nothing");
    }

    public static void main(String[] arguments) throws Exception {
        orb = ORB.init(new String[0], null);
        poa = POAHelper.narrow(orb.resolve_initial_references("RootPOA"));
        poa.the_POAManager().activate();
        Object consumers = activate("CosNotifyChannelAdmin.ConsumerAdmin", AckChannel::admin);
        Object suppliers = activate("CosNotifyChannelAdmin.SupplierAdmin", AckChannel::admin);
        Object channel = activate("CosNotifyChannelAdmin.EventChannel", (name, given) ->
            name.equals("default_consumer_admin") ? consumers
                : name.equals("default_supplier_admin") ? suppliers
                : name.equals("get_qos") ? new Property[0] : null);
        say(orb.object_to_string((org.omg.CORBA.Object) channel));
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ");
            int[] numbers = new int[words.length - 1];
            for (int at = 0; at < numbers.length; at++)
                numbers[at] = Integer.parseInt(words[at + 1]);
            if (words[0].equals("deaf"))
                deaf = numbers[0];
            if (words[0].equals("silent"))
                silent = numbers[0];
            if (words[0].equals("refuse"))
                refusing = numbers[0];
            if (words[0].equals("pull"))
                try {
                    pull();
                } catch (InvocationTargetException error) {
                    say("not pulled " + error.getCause().getClass().getSimpleName());
                }
            if (words[0].equals("acknowledge")) {
                acknowledge(numbers);
                say("told");
            }
            if (words[0].equals("again"))
                give(numbers[0]);
            if (words[0].equals("give")) {
                StructuredEvent[] events = new StructuredEvent[numbers.length];
                for (int at = 0; at < numbers.length; at++)
                    events[at] = event(numbers[at]);
                events[0].header.variable_header = new Property[] {property("SequenceNumber", next)};
                synchronized (AckChannel.class) {
                    kept.put(next, events);
                }
                give(next++);
            }
        }
        System.exit(0);
    }
}
