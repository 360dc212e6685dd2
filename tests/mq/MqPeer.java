import com.ibm.mq.headers.MQMD;
import com.ibm.mq.headers.MQRFH2;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HexFormat;

/** Reads and writes MQMD and MQRFH2 with IBM's classes, as lines on standard input ask for. */
public final class MqPeer {
    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] asked = line.split("\t");
            if (asked[0].equals("read")) {
                read(Integer.parseInt(asked[1]), HexFormat.of().parseHex(asked[2]));
            } else {
                write(Integer.parseInt(asked[1]), lines);
            }
            System.out.println(".");
            System.out.flush();
        }
    }

    private static void read(int encoding, byte[] octets) throws Exception {
        DataInputStream in = new DataInputStream(new ByteArrayInputStream(octets));
        MQMD about = new MQMD(in, encoding, 1208);
        tell("MQMD", "Format", about.getFormat().trim());
        tell("MQMD", "Priority", about.getPriority());
        tell("MQMD", "Persistence", about.getPersistence());
        tell("MQMD", "Expiry", about.getExpiry());
        tell("MQMD", "MsgId", HexFormat.of().formatHex(about.getMsgId()));
        tell("MQMD", "CorrelId", HexFormat.of().formatHex(about.getCorrelId()));
        tell("MQMD", "ReplyToQ", about.getReplyToQ().trim());
        tell("MQMD", "ReplyToQMgr", about.getReplyToQMgr().trim());
        tell("MQMD", "PutDate", about.getPutDate());
        tell("MQMD", "PutTime", about.getPutTime());
        tell("MQMD", "BackoutCount", about.getBackoutCount());
        tell("MQMD", "UserIdentifier", about.getUserIdentifier().trim());
        MQRFH2 header = new MQRFH2(in, encoding, 1208);
        tell("RFH2", "Format", header.getFormat().trim());
        tell("RFH2", "CodedCharSetId", header.getCodedCharSetId());
        for (MQRFH2.Element folder : header.getFolders()) {
            for (MQRFH2.Element child : folder.getChildren()) {
                tell(folder.getName(), child.getName(), child.getValue());
            }
        }
        tell("body", "octets", in.readAllBytes());
    }

    private static void tell(String folder, String name, Object value) {
        boolean octets = value instanceof byte[];
        byte[] text = octets ? (byte[]) value : String.valueOf(value).getBytes(StandardCharsets.UTF_8);
        String kind = value == null ? "null" : octets ? "bytes" : value.getClass().getSimpleName();
        System.out.println(folder + "\t" + name + "\t" + kind + "\t" + Base64.getEncoder().encodeToString(text));
    }

    private static void write(int encoding, BufferedReader lines) throws Exception {
        MQMD about = new MQMD();
        MQRFH2 header = new MQRFH2();
        about.setVersion(2);
        about.setEncoding(encoding);
        about.setCodedCharSetId(1208);
        about.setFormat("MQHRF2  ");
        header.setEncoding(encoding);
        header.setCodedCharSetId(1208);
        header.setFormat("MQSTR   ");
        header.setNameValueCCSID(1208);
        byte[] body = {};
        for (String line = lines.readLine(); !line.equals("."); line = lines.readLine()) {
            String[] parts = line.split("\t", -1);
            byte[] octets = Base64.getDecoder().decode(parts[3]);
            String text = new String(octets, StandardCharsets.UTF_8);
            switch (parts[0] + "." + parts[1]) {
                case "body.octets" -> body = octets;
                case "MQMD.MsgId" -> about.setMsgId(octets);
                case "MQMD.CorrelId" -> about.setCorrelId(octets);
                case "MQMD.Persistence" -> about.setPersistence(Integer.parseInt(text));
                case "MQMD.Priority" -> about.setPriority(Integer.parseInt(text));
                case "MQMD.ReplyToQ" -> about.setReplyToQ(text);
                default -> header.setFieldValue(
                        parts[0], parts[1], value(parts[2], text), parts[0].equals("usr") && !parts[2].equals("String"));
            }
        }
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        DataOutputStream data = new DataOutputStream(out);
        about.write(data, encoding, 1208);
        header.write(data, encoding, 1208);
        data.write(body);
        System.out.println(HexFormat.of().formatHex(out.toByteArray()));
    }

    private static Object value(String kind, String text) {
        return switch (kind) {
            case "Boolean" -> Boolean.valueOf(text);
            case "Byte" -> Byte.valueOf(text);
            case "Short" -> Short.valueOf(text);
            case "Integer" -> Integer.valueOf(text);
            case "Long" -> Long.valueOf(text);
            case "Float" -> Float.valueOf(text);
            case "Double" -> Double.valueOf(text);
            default -> text;
        };
    }
}
