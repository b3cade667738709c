import java.net.HttpURLConnection;
import java.net.URI;
import java.util.Base64;

class Call {
    public static void main(String[] arguments) throws Exception {
        var url = URI.create(arguments[0]).toURL();
        var method = arguments[1];
        var key = Base64.getEncoder().encodeToString((System.getenv("API_KEY") + ":").getBytes());
        if (arguments[2].equals("kept")) {
            var first = (HttpURLConnection) url.openConnection();
            first.setRequestProperty("Authorization", "Basic " + key);
            (first.getResponseCode() < 400 ? first.getInputStream() : first.getErrorStream()).readAllBytes();
        }
        var connection = (HttpURLConnection) url.openConnection();
        connection.setRequestMethod(method);
        connection.setRequestProperty("Authorization", "Basic " + key);
        if (method.equals("POST")) {
            var body = System.in.readAllBytes();
            connection.setRequestProperty("Content-Type", "application/json");
            connection.setDoOutput(true);
            if (arguments.length > 3 && arguments[3].equals("fixed")) {
                connection.setFixedLengthStreamingMode(body.length);
            }
            connection.getOutputStream().write(body);
        }
        System.out.print(connection.getResponseCode());
    }
}
