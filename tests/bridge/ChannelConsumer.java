import org.omg.CORBA.Any;
import org.omg.CORBA.IntHolder;
import org.omg.CORBA.ORB;
import org.omg.CosNotification.EventType;
import org.omg.CosNotification.Property;
import org.omg.CosNotification.StructuredEvent;
import org.omg.CosNotifyChannelAdmin.*;
import org.omg.CosNotifyComm.*;
import org.omg.CosNotifyFilter.*;
import org.omg.PortableServer.POA;
import org.omg.PortableServer.POAHelper;

/**
 * A consumer that a channel pushes to, with a filter at its proxy: prints a line an event, until one with the property
 * "last" has come. Its arguments: the address of the event channel factory, and the constraint.
 */
public class ChannelConsumer extends StructuredPushConsumerPOA {
    public static void main(String[] args) throws Exception {
        ORB orb = ORB.init(new String[0], null);
        POA poa = POAHelper.narrow(orb.resolve_initial_references("RootPOA"));
        poa.the_POAManager().activate();
        EventChannelFactory factory = EventChannelFactoryHelper.narrow(orb.string_to_object(args[0]));
        EventChannel channel = factory.get_event_channel(factory.get_all_channels()[0]);
        ProxySupplier supplier =
                channel.default_consumer_admin()
                        .obtain_notification_push_supplier(ClientType.STRUCTURED_EVENT, new IntHolder());
        StructuredProxyPushSupplier proxy = StructuredProxyPushSupplierHelper.narrow(supplier);
        Filter filter = channel.default_filter_factory().create_filter("EXTENDED_TCL");
        EventType[] all = {new EventType("*", "*")};
        filter.add_constraints(new ConstraintExp[] {new ConstraintExp(all, args[1])});
        proxy.add_filter(filter);
        proxy.connect_structured_push_consumer(new ChannelConsumer()._this(orb));
        System.out.println("ready");
        orb.run();
    }

    private static String text(Any value) {
        switch (value.type().kind().value()) {
            case org.omg.CORBA.TCKind._tk_string: return value.extract_string();
            case org.omg.CORBA.TCKind._tk_long: return Integer.toString(value.extract_long());
            case org.omg.CORBA.TCKind._tk_boolean: return Boolean.toString(value.extract_boolean());
            default: return "?";
        }
    }

    public void push_structured_event(StructuredEvent event) {
        StringBuilder line = new StringBuilder(event.header.fixed_header.event_type.type_name);
        boolean last = false;
        for (String name : new String[] {"n", "severity", "last"}) {
            for (Property one : event.filterable_data) {
                if (one.name.equals(name)) {
                    line.append(' ').append(name).append('=').append(text(one.value));
                    last |= name.equals("last");
                }
            }
        }
        System.out.println(line.append(' ').append(text(event.remainder_of_body)));
        if (last) {
            System.out.flush();
            Runtime.getRuntime().halt(0);
        }
    }

    public void offer_change(EventType[] added, EventType[] removed) {}

    public void disconnect_structured_push_consumer() {}
}
