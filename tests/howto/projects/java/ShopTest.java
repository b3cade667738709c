import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.AfterTestExecutionCallback;
import org.junit.jupiter.api.extension.RegisterExtension;

class ShopTest {
    final Set<String> shipped = ConcurrentHashMap.newKeySet();
    HttpServer shop;
    Sandbox sandbox;

    @RegisterExtension
    final AfterTestExecutionCallback report = test -> sandbox.report(test.getExecutionException().isPresent());

    @BeforeEach
    void start() throws Exception {
        shop = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        shop.createContext("/webhook", exchange -> {
            String id = Sandbox.field(new String(exchange.getRequestBody().readAllBytes()), "order_id");
            try {
                String order = sandbox.call("GET", "/v1/orders/" + id + "/", "");
                if ("completed".equals(Sandbox.field(order, "status"))) {
                    shipped.add(id);
                }
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
            }
            exchange.sendResponseHeaders(204, -1);
        });
        shop.start();
        sandbox = Sandbox.project("http://127.0.0.1:" + shop.getAddress().getPort() + "/webhook");
    }

    @AfterEach
    void stop() {
        shop.stop(0);
    }

    String checkout() throws Exception {
        return Sandbox.field(sandbox.call("POST", "/v1/orders/",
            "{\"currency\": \"EUR\", \"amount\": 1295, \"transactions\": [{\"payment_method\": \"credit-card\"}]}"), "id");
    }

    @Test
    void aPaidOrderIsShipped() throws Exception {
        String id = checkout();
        sandbox.call("POST", "/control/orders/" + id + "/act/", "{\"actor\": \"customer\", \"action\": \"pay\"}");
        sandbox.call("GET", "/control/wait/?idle=1", "");
        assertTrue(shipped.contains(id));
    }

    @Test
    void anUnpaidOrderExpires() throws Exception {
        String id = checkout();
        sandbox.call("POST", "/control/clock/advance/", "{\"by\": \"PT30M\"}");
        assertEquals("expired", Sandbox.field(sandbox.call("GET", "/v1/orders/" + id + "/", ""), "status"));
        assertTrue(shipped.isEmpty());
    }
}
