import com.unboundid.ldap.listener.InMemoryDirectoryServer;
import com.unboundid.ldap.listener.InMemoryDirectoryServerConfig;
import com.unboundid.ldap.listener.InMemoryListenerConfig;
import java.net.InetAddress;

/** An LDAP directory on loopback: BASE ADMINISTRATOR PASSWORD LDIF. Prints its port, and ends with its input. */
public class Directory {
    public static void main(String[] words) throws Exception {
        InMemoryDirectoryServerConfig config = new InMemoryDirectoryServerConfig(words[0]);
        config.setSchema(null);
        config.addAdditionalBindCredentials(words[1], words[2]);
        InetAddress here = InetAddress.getLoopbackAddress();
        config.setListenerConfigs(InMemoryListenerConfig.createLDAPConfig("loopback", here, 0, null));
        InMemoryDirectoryServer server = new InMemoryDirectoryServer(config);
        server.importFromLDIF(true, words[3]);
        server.startListening();
        System.out.println(server.getListenPort());
        System.in.read();
        server.shutDown(true);
    }
}
