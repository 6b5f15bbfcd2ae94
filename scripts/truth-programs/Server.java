import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.nio.file.*;
import java.util.*;

/** A web server with a table, which writes its port into the file `port`. */
class Server {
    public static void main(String[] words) throws Exception {
        Map<Integer, String> table = new HashMap<>();
        for (int i = 0; i < 20000; i++) table.put(i, ("<p>" + i + "</p>").repeat(100));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        server.createContext("/", exchange -> {
            String query = exchange.getRequestURI().getQuery();
            boolean end = exchange.getRequestURI().getPath().equals("/end");
            byte[] text = (end ? "ended\n" : table.get(query == null ? 7 : Integer.parseInt(query) % 20000)).getBytes();
            exchange.sendResponseHeaders(200, text.length);
            exchange.getResponseBody().write(text);
            exchange.close();
            if (end) new Thread(() -> { server.stop(0); System.exit(0); }).start();
        });
        server.start();
        Files.writeString(Path.of("port.new"), String.valueOf(server.getAddress().getPort()));
        Files.move(Path.of("port.new"), Path.of("port"), StandardCopyOption.REPLACE_EXISTING);
    }
}
