package org.apache.iceberg.rest;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.lang.reflect.Field;
import java.net.InetSocketAddress;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Executors;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.AlreadyExistsException;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.exceptions.NoSuchNamespaceException;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.inmemory.InMemoryCatalog;
import org.apache.iceberg.rest.requests.CommitTransactionRequest;
import org.apache.iceberg.rest.requests.CreateNamespaceRequest;
import org.apache.iceberg.rest.requests.CreateTableRequest;
import org.apache.iceberg.rest.requests.RegisterTableRequest;
import org.apache.iceberg.rest.requests.UpdateTableRequest;
import org.apache.iceberg.rest.responses.ConfigResponse;
import org.apache.iceberg.rest.responses.ErrorResponse;
import org.apache.iceberg.rest.responses.LoadTableResponse;

/**
 * A REST catalog for tests and the demo: HTTP around Iceberg's own catalog handlers, which judge every commit, and a catalog in memory
 * whose files are in Azurite. It is in this package because the handlers' JSON is.
 *
 * <p>Arguments are properties, {@code key=value}: those of the catalog, {@code default.key} for clients (the answer of the configuration
 * endpoint) and {@code table.key} for whoever loads a table, such as {@code table.adls.sas-token.account}. It prints its port and ends
 * with its standard input.
 */
public final class RestServer {
  private final InMemoryCatalog catalog = new InMemoryCatalog();
  private final Map<String, String> defaults = new HashMap<>();
  private final Map<String, String> ofTables = new HashMap<>();

  public static void main(String[] arguments) throws IOException {
    RestServer server = new RestServer();
    Map<String, String> properties = new HashMap<>();
    for (String argument : arguments) {
      String[] pair = argument.split("=", 2);
      if (pair[0].startsWith("default.")) {
        server.defaults.put(pair[0].substring("default.".length()), pair[1]);
      } else if (pair[0].startsWith("table.")) {
        server.ofTables.put(pair[0].substring("table.".length()), pair[1]);
      } else {
        properties.put(pair[0], pair[1]);
      }
    }
    server.catalog.initialize("rest", properties);
    server.keepFilesIn(properties);
    HttpServer http = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 128);
    http.setExecutor(Executors.newFixedThreadPool(32));
    http.createContext("/", server::serve);
    http.start();
    System.out.println("listening on " + http.getAddress().getPort());
    while (System.in.read() >= 0) {
      // Whoever started it is still there.
    }
    System.exit(0);
  }

  /** The catalog in memory knows one way to its files, in memory too; nobody else could read those. */
  private void keepFilesIn(Map<String, String> properties) {
    AzuriteFileIO files = new AzuriteFileIO();
    files.initialize(properties);
    try {
      Field io = InMemoryCatalog.class.getDeclaredField("io");
      io.setAccessible(true);
      io.set(catalog, files);
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
  }

  private void serve(HttpExchange exchange) throws IOException {
    int status = 200;
    Object answer;
    try {
      answer = answer(exchange);
    } catch (Exception error) {
      status = status(error);
      answer =
          ErrorResponse.builder()
              .responseCode(status)
              .withType(error.getClass().getSimpleName())
              .withMessage(String.valueOf(error.getMessage()))
              .build();
    }
    byte[] body = answer == null ? new byte[0] : RESTObjectMapper.mapper().writeValueAsBytes(answer);
    exchange.getResponseHeaders().set("Content-Type", "application/json");
    boolean empty = body.length == 0 || exchange.getRequestMethod().equals("HEAD");
    exchange.sendResponseHeaders(answer == null ? 204 : status, empty ? -1 : body.length);
    if (!empty) {
      exchange.getResponseBody().write(body);
    }
    exchange.close();
  }

  /** As the REST specification has it for each kind of error. */
  private static int status(Exception error) {
    if (error instanceof CommitFailedException || error instanceof AlreadyExistsException) {
      return 409;
    }
    if (error instanceof NoSuchTableException || error instanceof NoSuchNamespaceException) {
      return 404;
    }
    if (error instanceof IllegalArgumentException || error instanceof IOException) {
      return 400;
    }
    if (error instanceof UnsupportedOperationException) {
      return 406;
    }
    error.printStackTrace();
    return 500;
  }

  private Object answer(HttpExchange exchange) throws IOException {
    String method = exchange.getRequestMethod();
    String[] path = exchange.getRequestURI().getRawPath().substring(1).split("/");
    String route = method + " " + shape(path);
    switch (route) {
      case "GET config":
        return ConfigResponse.builder().withDefaults(defaults).build();
      case "GET namespaces":
        return CatalogHandlers.listNamespaces(catalog, parent(exchange));
      case "POST namespaces":
        return CatalogHandlers.createNamespace(catalog, body(exchange, CreateNamespaceRequest.class));
      case "GET namespace":
        return CatalogHandlers.loadNamespace(catalog, namespace(path));
      case "HEAD namespace":
        CatalogHandlers.namespaceExists(catalog, namespace(path));
        return null;
      case "POST register":
        return ofTable(CatalogHandlers.registerTable(catalog, namespace(path), body(exchange, RegisterTableRequest.class)));
      case "GET tables":
        return CatalogHandlers.listTables(catalog, namespace(path));
      case "POST tables":
        CreateTableRequest create = body(exchange, CreateTableRequest.class);
        return ofTable(
            create.stageCreate()
                ? CatalogHandlers.stageTableCreate(catalog, namespace(path), create)
                : CatalogHandlers.createTable(catalog, namespace(path), create));
      case "GET table":
        return ofTable(CatalogHandlers.loadTable(catalog, table(path)));
      case "HEAD table":
        CatalogHandlers.tableExists(catalog, table(path));
        return null;
      case "POST table":
        return CatalogHandlers.updateTable(catalog, table(path), body(exchange, UpdateTableRequest.class));
      case "DELETE table":
        CatalogHandlers.dropTable(catalog, table(path));
        return null;
      case "POST metrics":
        return null;
      case "POST transaction":
        for (UpdateTableRequest change : body(exchange, CommitTransactionRequest.class).tableChanges()) {
          CatalogHandlers.updateTable(catalog, change.identifier(), change);
        }
        return null;
      default:
        throw new NoSuchNamespaceException("no route %s %s", method, exchange.getRequestURI());
    }
  }

  /** What a path is of. */
  private static String shape(String[] path) {
    if (path.length < 2 || !path[0].equals("v1")) {
      return "nothing";
    }
    if (path[1].equals("transactions")) {
      return "transaction";
    }
    if (path.length == 2) {
      return path[1];
    }
    switch (path.length) {
      case 3:
        return "namespace";
      case 4:
        return path[3];
      case 5:
        return path[3].equals("tables") ? "table" : "nothing";
      default:
        return path[5];
    }
  }

  private LoadTableResponse ofTable(LoadTableResponse loaded) {
    return LoadTableResponse.builder().withTableMetadata(loaded.tableMetadata()).addAllConfig(ofTables).build();
  }

  /** The namespace that is asked for the ones in it. */
  private static Namespace parent(HttpExchange exchange) {
    String query = exchange.getRequestURI().getRawQuery();
    for (String part : query == null ? new String[0] : query.split("&")) {
      if (part.startsWith("parent=") && part.length() > "parent=".length()) {
        return Namespace.of(decode(part.substring("parent=".length())).split("\u001f"));
      }
    }
    return Namespace.empty();
  }

  private static Namespace namespace(String[] path) {
    return Namespace.of(decode(path[2]).split("\u001f"));
  }

  private static TableIdentifier table(String[] path) {
    return TableIdentifier.of(namespace(path), decode(path[4]));
  }

  private static String decode(String text) {
    return URLDecoder.decode(text.replace("+", "%2B"), StandardCharsets.UTF_8);
  }

  private static <T extends RESTRequest> T body(HttpExchange exchange, Class<T> type) throws IOException {
    T read = RESTObjectMapper.mapper().readValue(exchange.getRequestBody(), type);
    read.validate();
    return read;
  }
}
