import org.omg.CORBA.IntHolder;
import org.omg.CORBA.ORB;
import org.omg.CORBA.Request;
import org.omg.CosBridgeAdmin.*;

/** Makes a bridge at a factory and handles it, with the stubs of the specification's own IDL. */
public class BridgeClient {
    static ExternalEndpoint channel(ExternalEndpointRole role, int id) {
        ExternalEndpointConnector connector = new ExternalEndpointConnector();
        connector.channel_id(MessageType.STRUCTURED_EVENT, id);
        return new ExternalEndpoint(role, connector, FlowStyle.PUSH, MessageType.STRUCTURED_EVENT);
    }

    static ExternalEndpoint queue(String name) {
        ExternalEndpointConnector connector = new ExternalEndpointConnector();
        connector.destination(new JMSDestination(JMSDestinationType.QUEUE, name, ""));
        return new ExternalEndpoint(ExternalEndpointRole.SINK, connector, FlowStyle.PUSH, MessageType.JMS_MESSAGE);
    }

    /** The status, asked without a stub: the stubs of JacORB's IDL lack the operation. */
    static int status(ORB orb, Bridge bridge) {
        Request request = bridge._request("get_status");
        String[] values = {"ACTIVE", "INACTIVE"};
        request.set_return_type(orb.create_enum_tc("IDL:omg.org/CosBridgeAdmin/BridgeStatus:1.0", "BridgeStatus", values));
        request.invoke();
        if (request.env().exception() != null) {
            throw new RuntimeException(request.env().exception());
        }
        return request.return_value().create_input_stream().read_long();
    }

    public static void main(String[] args) throws Exception {
        ORB orb = ORB.init(new String[0], null);
        BridgeFactory factory = BridgeFactoryHelper.narrow(orb.string_to_object(args[0]));
        IntHolder id = new IntHolder();
        Bridge bridge = factory.create_bridge(channel(ExternalEndpointRole.SOURCE, 0), queue("ALARMS"), id);
        System.out.println("made " + id.value + " of " + factory.get_all_bridges().length);
        System.out.println("status " + status(orb, bridge));
        System.out.println(bridge.end_point_sender().connector.destination().destination_name);
        System.out.println(factory.get_bridge_with_id(id.value).end_point_receiver().connector.channel_id());
        bridge.start_bridge();
        System.out.println("status " + status(orb, bridge));
        try {
            bridge.start_bridge();
        } catch (BridgeAlreadyStarted error) {
            System.out.println("BridgeAlreadyStarted");
        }
        bridge.stop_bridge();
        System.out.println("status " + status(orb, bridge));
        try {
            bridge.stop_bridge();
        } catch (BridgeInactive error) {
            System.out.println("BridgeInactive");
        }
        try {
            factory.create_bridge(channel(ExternalEndpointRole.SOURCE, 9), queue("ALARMS"), id);
        } catch (InvalidExternalEndPoints error) {
            System.out.println("InvalidExternalEndPoints " + error.error[0].code.value());
        }
        try {
            factory.get_bridge_with_id(99);
        } catch (BridgeNotFound error) {
            System.out.println("BridgeNotFound");
        }
        bridge.destroy();
        System.out.println("left " + factory.get_all_bridges().length);
        System.exit(0);
    }
}
