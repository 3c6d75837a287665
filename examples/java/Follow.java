import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.UUID;

/**
 * Publish an event and follow a rendezvous point by plain HTTP, with Java's standard library only (Java 17):
 *
 * <pre>java Follow.java RENDEZVOUS-POINT [CURSOR-FILE]</pre>
 *
 * The cursor of the last event is kept in the file, so that the next start continues behind it. Environment: HERALD_URL
 * (default http://127.0.0.1:8000), HERALD_TOKEN.
 */
public class Follow {
    static final String BASE = System.getenv().getOrDefault("HERALD_URL", "http://127.0.0.1:8000");
    static final String TOKEN = System.getenv("HERALD_TOKEN");
    static final HttpClient HTTP = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    /** The address of a rendezvous point's part; a name is one segment, with its slashes. */
    static HttpRequest.Builder request(String rp, String part) {
        String segment = URLEncoder.encode(rp, StandardCharsets.UTF_8).replace("+", "%20");
        URI address = URI.create(BASE + "/api/v1/rps/" + segment + "/" + part);
        return HttpRequest.newBuilder(address).header("Authorization", "Bearer " + TOKEN);
    }

    /** In binary mode the attributes are headers, and the body is the data as it is. */
    static void publish(String rp, String json) throws Exception {
        HttpRequest request = request(rp, "events")
                .header("Content-Type", "application/json")
                .header("ce-specversion", "1.0")
                .header("ce-id", UUID.randomUUID().toString())
                .header("ce-source", "/examples/java")
                .header("ce-type", "org.example.greeting")
                .POST(HttpRequest.BodyPublishers.ofString(json))
                .build();
        HttpResponse<String> answer = HTTP.send(request, HttpResponse.BodyHandlers.ofString());
        if (answer.statusCode() != 201) {
            throw new IllegalStateException("refused: " + answer.body()); // says what is wrong, then what to do
        }
    }

    /** Read the stream until it ends; returns the cursor to continue from. */
    static String follow(String rp, String cursor, Path file) throws Exception {
        HttpRequest.Builder asked = request(rp, "stream?after=earliest").header("Accept", "text/event-stream");
        if (!cursor.isEmpty()) {
            asked.header("Last-Event-ID", cursor); // takes precedence over after
        }
        var answer = HTTP.send(asked.build(), HttpResponse.BodyHandlers.ofInputStream());
        if (answer.statusCode() != 200) {
            throw new IllegalStateException("refused: " + new String(answer.body().readAllBytes(), StandardCharsets.UTF_8));
        }
        String kind = "", id = "", line;
        StringBuilder data = new StringBuilder();
        try (var lines = new BufferedReader(new InputStreamReader(answer.body(), StandardCharsets.UTF_8))) {
            while ((line = lines.readLine()) != null) {
                if (line.startsWith("event:")) {
                    kind = line.substring(6).strip();
                } else if (line.startsWith("id:")) {
                    id = line.substring(3).strip();
                } else if (line.startsWith("data:")) {
                    data.append(line.substring(5).strip());
                } else if (line.isEmpty() && data.length() > 0) {
                    if (kind.isEmpty()) {
                        System.out.println(id + " " + data);
                    } else {
                        System.err.println(kind + ": " + data); // gap: events that are not in the history any more
                    }
                    cursor = id.isEmpty() ? cursor : id;
                    if (file != null) {
                        Files.writeString(file, cursor);
                    }
                    kind = "";
                    data.setLength(0);
                }
            }
        }
        return cursor;
    }

    public static void main(String[] arguments) throws Exception {
        Path file = arguments.length > 1 ? Path.of(arguments[1]) : null;
        publish(arguments[0], "{\"greeting\": \"from Java\"}");
        String cursor = file != null && Files.exists(file) ? Files.readString(file) : "";
        while (true) {
            cursor = follow(arguments[0], cursor, file);
            System.err.println("the stream ended; connecting again");
            Thread.sleep(1000);
        }
    }
}
