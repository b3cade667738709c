import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** One sandbox for all tests, with a project for each test. Use your JSON library instead of field(). */
record Sandbox(String url, String key) {
    private static final HttpClient CLIENT = HttpClient.newHttpClient();
    private static String started;

    static synchronized Sandbox project(String webhookUrl) throws Exception {
        if (started == null) {
            started = start();
        }
        String settings = "{\"clock\": \"frozen\", \"webhook_url\": \"" + webhookUrl + "\"}";
        String created = new Sandbox(started, "").call("POST", "/control/projects/", settings);
        return new Sandbox(started, field(created, "api_key"));
    }

    String call(String method, String path, String body) throws IOException, InterruptedException {
        String token = System.getenv("SANDBOX_CONTROL_TOKEN"); // required to create projects, if set on the server
        String authorization = key.isEmpty()
            ? "Bearer " + token
            : "Basic " + Base64.getEncoder().encodeToString((key + ":").getBytes());
        HttpRequest request = HttpRequest.newBuilder(URI.create(url + path))
            .header("Authorization", authorization)
            .header("Content-Type", "application/json")
            .method(method, HttpRequest.BodyPublishers.ofString(body))
            .build();
        HttpResponse<String> answer = CLIENT.send(request, HttpResponse.BodyHandlers.ofString());
        if (answer.statusCode() >= 400) {
            throw new IOException(answer.statusCode() + ": " + answer.body());
        }
        return answer.body();
    }

    /** Print the timeline of a failed test, or mistakes; with PAYMENT_SANDBOX_REVIEW=error, mistakes fail the test. */
    void report(boolean isFailed) throws Exception {
        String mode = System.getenv().getOrDefault("PAYMENT_SANDBOX_REVIEW", "warn");
        String answer = call("GET", isFailed ? "/control/report/" : "/control/review/", "");
        String text = field(answer, "text").replace("\\n", "\n").replace("\\u20ac", "€");
        if (!isFailed && mode.equals("error") && !text.isEmpty()) {
            throw new AssertionError(text);
        }
        if (isFailed || !mode.equals("off")) {
            System.err.println(text);
        }
    }

    static String field(String json, String name) {
        Matcher matcher = Pattern.compile("\"" + name + "\": \"([^\"]*)\"").matcher(json);
        return matcher.find() ? matcher.group(1) : null;
    }

    private static String start() throws Exception {
        if (System.getenv("SANDBOX_URL") != null) {
            return System.getenv("SANDBOX_URL");
        }
        Path ready = Files.createTempDirectory("sandbox").resolve("ready.json");
        String command = System.getenv().getOrDefault("SANDBOX_COMMAND", "payment-sandbox");
        Process server = new ProcessBuilder((command + " serve --port 0 --ready-file " + ready).split(" "))
            .redirectOutput(ProcessBuilder.Redirect.DISCARD)
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
        Runtime.getRuntime().addShutdownHook(new Thread(server::destroy));
        while (!Files.exists(ready)) {
            if (!server.isAlive()) {
                throw new IOException(command + " did not start");
            }
            Thread.sleep(20);
        }
        return field(Files.readString(ready), "url");
    }
}
