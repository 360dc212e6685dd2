import java.io.ByteArrayInputStream;
import java.nio.charset.StandardCharsets;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.TextMessage;
import javax.xml.parsers.DocumentBuilderFactory;
import org.w3c.dom.Document;
import org.w3c.dom.Element;
import org.w3c.dom.NodeList;

/** What a Java party of MTOSI over JMS makes and reads itself, without any of the project's code. */
final class Mtosi {
    static final String HDR = "http://www.tmforum.org/mtop/fmw/xsd/hdr/v1";
    static final String MER = "http://www.tmforum.org/mtop/mri/xsd/mer/v1";

    private Mtosi() {}

    static Document parsed(Message message) throws Exception {
        DocumentBuilderFactory factory = DocumentBuilderFactory.newInstance();
        factory.setNamespaceAware(true);
        factory.setFeature("http://apache.org/xml/features/disallow-doctype-decl", true);
        byte[] text = ((TextMessage) message).getText().getBytes(StandardCharsets.UTF_8);
        return factory.newDocumentBuilder().parse(new ByteArrayInputStream(text));
    }

    /** The text of a field of the header; null where there is none. */
    static String field(Document document, String name) {
        NodeList found = document.getElementsByTagNameNS(HDR, name);
        return found.getLength() == 0 ? null : found.item(0).getTextContent();
    }

    /** The local name of the element in the body. */
    static String operation(Document document) {
        Element body = (Element) document.getElementsByTagNameNS("http://schemas.xmlsoap.org/soap/envelope/", "Body").item(0);
        for (int at = 0; at < body.getChildNodes().getLength(); at++) {
            if (body.getChildNodes().item(at) instanceof Element) {
                return body.getChildNodes().item(at).getLocalName();
            }
        }
        return "";
    }

    static String envelope(String header, String body) {
        return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<soap:Envelope xmlns:soap=\"http://schemas.xmlsoap.org/soap/envelope/\">"
            + "<soap:Header><h:header xmlns:h=\"" + HDR + "\">" + header + "</h:header></soap:Header><soap:Body>" + body + "</soap:Body></soap:Envelope>";
    }

    static String element(String name, Object value) {
        return value == null ? "" : "<h:" + name + ">" + value.toString().replace("&", "&amp;").replace("<", "&lt;") + "</h:" + name + ">";
    }

    /** The properties that Table 2 makes of a reply's header. */
    static void properties(Message message, String kind, String activity, String status) throws JMSException {
        message.setStringProperty("MTOSI_msgType", kind);
        message.setStringProperty("MTOSI_senderURI", "jms/JavaOS");
        message.setStringProperty("MTOSI_activityStatus", status);
        message.setStringProperty("MTOSI_activityName", activity);
    }
}
