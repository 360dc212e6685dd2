import emsSession.EmsSession_I;
import emsSession.EmsSession_IHelper;
import emsSession.EmsSession_IHolder;
import emsSession.EmsSession_IPOA;
import emsSessionFactory.EmsSessionFactory_IPOA;
import globaldefs.ExceptionType_T;
import globaldefs.ProcessingFailureException;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import nmsSession.NmsSession_I;
import org.omg.CORBA.ORB;
import org.omg.CORBA.ObjectHolder;
import org.omg.CosNaming.NamingContextExt;
import org.omg.CosNaming.NamingContextExtHelper;
import org.omg.CosNaming.NameComponent;
import org.omg.CosNaming.NamingContextPackage.AlreadyBound;
import org.omg.PortableServer.POA;
import org.omg.PortableServer.POAHelper;
import session.Session_I;

/**
 * An element manager: sessions and the reference to an event channel, no more. It does what lines on its standard input
 * say, and says what happens on its standard output.
 */
public class Ems {
    static final String USER = "nms";
    static POA poa;
    static org.omg.CORBA.Object channel;
    static Sessions last;

    static synchronized void say(String text) {
        System.out.println(text);
        System.out.flush();
    }

    static class Sessions extends EmsSession_IPOA {
        final NmsSession_I client;
        boolean isQuiet;

        Sessions(NmsSession_I client) {
            this.client = client;
        }

        @Override
        public void getEventChannel(ObjectHolder found) throws ProcessingFailureException {
            if (channel == null) {
                throw new ProcessingFailureException(ExceptionType_T.EXCPT_NOT_IMPLEMENTED, "no channel here");
            }
            found.value = channel;
        }

        @Override
        public Session_I associatedSession() {
            return client;
        }

        @Override
        public void ping() {
            if (isQuiet) {
                throw new org.omg.CORBA.OBJECT_NOT_EXIST();
            }
            say("pinged");
        }

        @Override
        public void endSession() {
            say("ended");
        }
    }

    static class Factory extends EmsSessionFactory_IPOA {
        final String password;

        Factory(String password) {
            this.password = password;
        }

        @Override
        public void getEmsSession(String user, String given, NmsSession_I client, EmsSession_IHolder made)
                throws ProcessingFailureException {
            if (!user.equals(USER) || !given.equals(password)) {
                say("refused");
                throw new ProcessingFailureException(
                        ExceptionType_T.EXCPT_ACCESS_DENIED, "no user " + user + " with " + given);
            }
            try {
                last = new Sessions(client);
                made.value = EmsSession_IHelper.narrow(poa.servant_to_reference(last));
            } catch (org.omg.CORBA.UserException error) {
                throw new org.omg.CORBA.UNKNOWN(error.toString());
            }
            say("logged in");
        }
    }

    /** Arguments: password, file for the reference, file with that of the channel, name, naming service. */
    public static void main(String[] args) throws Exception {
        ORB orb = ORB.init(new String[0], null);
        poa = POAHelper.narrow(orb.resolve_initial_references("RootPOA"));
        poa.the_POAManager().activate();
        if (!args[2].isEmpty()) {
            channel = orb.string_to_object(Files.readString(Path.of(args[2])).strip());
        }
        org.omg.CORBA.Object factory = poa.servant_to_reference(new Factory(args[0]));
        Files.writeString(Path.of(args[1]), orb.object_to_string(factory));
        if (args.length > 3) {
            bind(NamingContextExtHelper.narrow(orb.string_to_object(args[4])), args[3], factory);
        }
        say("ready");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "lose" -> last.client.eventLossOccurred(words[1], words[2]);
                case "alarms" -> last.client.alarmLossOccurred(words[1], words[2]);
                case "clear" -> last.client.eventLossCleared(words[1]);
                case "ping" -> last.client.ping();
                case "end" -> last.client.endSession();
                case "quiet" -> last.isQuiet = true;
                case "about" -> say(
                        last.client._is_a("IDL:mtnm.tmforum.org/session/Session_I:1.0")
                                + " "
                                + last.client.associatedSession()._is_equivalent(poa.servant_to_reference(last)));
                default -> say("no " + line);
            }
            say("did " + words[0]);
        }
        System.exit(0);
    }

    static void bind(NamingContextExt root, String name, org.omg.CORBA.Object what) throws Exception {
        NameComponent[] steps = root.to_name(name);
        for (int size = 1; size < steps.length; size++) {
            try {
                root.bind_new_context(java.util.Arrays.copyOf(steps, size));
            } catch (AlreadyBound there) {
                continue;
            }
        }
        root.rebind(steps, what);
    }
}
