import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Properties;
import javax.naming.Context;
import javax.naming.InitialContext;

/** Binds administered objects in a directory, as an administrator does: CLASS NAME ARGUMENT, as often as given. */
public class Binder {
    public static void main(String[] words) throws Exception {
        Properties environment = new Properties();
        environment.load(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Context context = new InitialContext(environment);
        for (int i = 0; i < words.length; i += 3) {
            Object made = Class.forName(words[i]).getConstructor(String.class).newInstance(words[i + 2]);
            context.rebind(words[i + 1], made);
        }
        context.close();
    }
}
