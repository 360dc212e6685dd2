import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import javax.jms.InvalidSelectorException;
import org.apache.activemq.command.ActiveMQTextMessage;
import org.apache.activemq.filter.BooleanExpression;
import org.apache.activemq.filter.MessageEvaluationContext;
import org.apache.activemq.selector.SelectorParser;

/**
 * What ActiveMQ says of selectors. One question a line, its parts parted by tabs and percent-encoded: the selector, then
 * `name=type:value` for each property, with the types s, b, i, l and d, and h for a header. One answer a line: TRUE,
 * FALSE, NULL, INVALID (the selector) or ERROR (the evaluation).
 */
public final class SelectorVerdicts {
    private SelectorVerdicts() {}

    public static void main(String[] arguments) throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var answers = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            answers.println(verdict(line.split("\t")));
        }
        answers.flush();
    }

    private static String verdict(String[] parts) throws Exception {
        BooleanExpression condition;
        try {
            condition = SelectorParser.parse(decoded(parts[0]));
        } catch (InvalidSelectorException | Error error) {
            return "INVALID";
        }
        var context = new MessageEvaluationContext();
        context.setMessageReference(message(parts));
        try {
            Object truth = condition.evaluate(context);
            return truth == null ? "NULL" : truth.toString().toUpperCase();
        } catch (RuntimeException error) {
            return "ERROR";
        }
    }

    private static ActiveMQTextMessage message(String[] parts) throws Exception {
        var message = new ActiveMQTextMessage();
        for (int at = 1; at < parts.length; at++) {
            int equals = parts[at].indexOf('=');
            String name = decoded(parts[at].substring(0, equals));
            String value = decoded(parts[at].substring(equals + 3));
            switch (parts[at].charAt(equals + 1)) {
                case 's' -> message.setStringProperty(name, value);
                case 'b' -> message.setBooleanProperty(name, Boolean.parseBoolean(value));
                case 'i' -> message.setIntProperty(name, Integer.parseInt(value));
                case 'l' -> message.setLongProperty(name, Long.parseLong(value));
                case 'd' -> message.setDoubleProperty(name, Double.parseDouble(value));
                default -> header(message, name, value);
            }
        }
        return message;
    }

    private static void header(ActiveMQTextMessage message, String name, String value) throws Exception {
        switch (name) {
            case "JMSPriority" -> message.setJMSPriority(Integer.parseInt(value));
            case "JMSDeliveryMode" -> message.setJMSDeliveryMode(Integer.parseInt(value));
            case "JMSTimestamp" -> message.setJMSTimestamp(Long.parseLong(value));
            case "JMSCorrelationID" -> message.setJMSCorrelationID(value);
            case "JMSType" -> message.setJMSType(value);
            default -> throw new IllegalArgumentException(name);
        }
    }

    private static String decoded(String text) {
        return URLDecoder.decode(text, StandardCharsets.UTF_8);
    }
}
