import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Properties;
import javax.naming.Context;
import javax.naming.InitialContext;

/**
 * Binds administered objects in a directory, as an administrator does: CLASS NAME ARGUMENT, as often as given.
 *
 * ARGUMENT is the constructor's; one that begins with a question mark is settings instead: ?setPort=1&setHostName=HERE.
 */
public class Binder {
    public static void main(String[] words) throws Exception {
        Properties environment = new Properties();
        environment.load(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Context context = new InitialContext(environment);
        for (int i = 0; i < words.length; i += 3) {
            context.rebind(words[i + 1], made(Class.forName(words[i]), words[i + 2]));
        }
        context.close();
    }

    private static Object made(Class<?> kind, String argument) throws Exception {
        if (!argument.startsWith("?")) {
            return kind.getConstructor(String.class).newInstance(argument);
        }
        Object made = kind.getConstructor().newInstance();
        for (String setting : argument.substring(1).split("&")) {
            String name = setting.substring(0, setting.indexOf('='));
            String value = setting.substring(name.length() + 1);
            if (value.matches("[0-9]+")) {
                kind.getMethod(name, int.class).invoke(made, Integer.parseInt(value));
            } else {
                kind.getMethod(name, String.class).invoke(made, value);
            }
        }
        return made;
    }
}
