package org.apache.iceberg.rest;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.Base64;
import java.util.Map;
import java.util.TreeMap;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.apache.iceberg.Files;
import org.apache.iceberg.exceptions.AlreadyExistsException;
import org.apache.iceberg.exceptions.NotFoundException;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.io.PositionOutputStream;
import org.apache.iceberg.io.SeekableInputStream;

/** Whole files in Azurite by its account's key; for metadata and the small tables of tests. */
public final class AzuriteFileIO implements FileIO {
  private static final String VERSION = "2021-12-02";

  private Map<String, String> properties = Map.of();
  private transient HttpClient client;

  @Override
  public void initialize(Map<String, String> given) {
    properties = Map.copyOf(given);
  }

  @Override
  public Map<String, String> properties() {
    return properties;
  }

  @Override
  public InputFile newInputFile(String location) {
    return isBlob(location) ? new BlobInput(location) : Files.localInput(location.replaceFirst("^file:/+", "/"));
  }

  @Override
  public OutputFile newOutputFile(String location) {
    return isBlob(location) ? new BlobOutput(location) : Files.localOutput(location.replaceFirst("^file:/+", "/"));
  }

  /** A stream of Spark keeps how far it is through this, too, in a folder of this machine. */
  private static boolean isBlob(String location) {
    return location.contains("@");
  }

  @Override
  public void deleteFile(String location) {
    HttpResponse<byte[]> response = send("DELETE", location, null, false);
    if (response.statusCode() != 404) {
      check(response, location);
    }
  }

  /** {@code abfss://container@account.host/key} as the path of a request. */
  private static String path(String location) {
    String rest = location.substring(location.indexOf("://") + 3);
    int slash = rest.indexOf('/');
    String key = URLEncoder.encode(rest.substring(slash + 1), StandardCharsets.UTF_8);
    return "/" + rest.substring(0, rest.indexOf('@')) + "/" + key.replace("+", "%20").replace("*", "%2A").replace("%7E", "~");
  }

  private synchronized HttpClient client() {
    if (client == null) {
      client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    }
    return client;
  }

  /** Signed with the account's key ("Authorize with Shared Key" of the Blob service). */
  private HttpResponse<byte[]> send(String method, String location, byte[] body, boolean create) {
    String endpoint = properties.get("azurite.endpoint");
    String account = properties.get("azurite.account");
    TreeMap<String, String> headers = new TreeMap<>();
    headers.put("x-ms-date", DateTimeFormatter.RFC_1123_DATE_TIME.format(ZonedDateTime.now(ZoneOffset.UTC)));
    headers.put("x-ms-version", VERSION);
    if (body != null) {
      headers.put("x-ms-blob-type", "BlockBlob");
    }
    StringBuilder text = new StringBuilder(method).append("\n\n\n");
    text.append(body == null || body.length == 0 ? "" : body.length).append("\n\n\n\n\n\n");
    text.append(create ? "*" : "").append("\n\n\n");
    headers.forEach((name, value) -> text.append(name).append(':').append(value).append('\n'));
    text.append('/').append(account).append(URI.create(endpoint).getRawPath()).append(path(location));
    try {
      Mac mac = Mac.getInstance("HmacSHA256");
      mac.init(new SecretKeySpec(Base64.getDecoder().decode(properties.get("azurite.key")), "HmacSHA256"));
      byte[] signature = mac.doFinal(text.toString().getBytes(StandardCharsets.UTF_8));
      HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(endpoint + path(location)));
      request.header("Authorization", "SharedKey " + account + ":" + Base64.getEncoder().encodeToString(signature));
      headers.forEach(request::header);
      if (create) {
        request.header("If-None-Match", "*");
      }
      HttpRequest.BodyPublisher published =
          body == null ? HttpRequest.BodyPublishers.noBody() : HttpRequest.BodyPublishers.ofByteArray(body);
      return client().send(request.method(method, published).build(), HttpResponse.BodyHandlers.ofByteArray());
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    } catch (GeneralSecurityException | InterruptedException error) {
      throw new IllegalStateException(error);
    }
  }

  private static void check(HttpResponse<byte[]> response, String location) {
    if (response.statusCode() == 404) {
      throw new NotFoundException("no blob %s", location);
    }
    if (response.statusCode() >= 300) {
      String said = new String(response.body(), StandardCharsets.UTF_8);
      throw new IllegalStateException(location + ": HTTP " + response.statusCode() + ": " + said);
    }
  }

  private final class BlobInput implements InputFile {
    private final String location;

    private BlobInput(String location) {
      this.location = location;
    }

    @Override
    public long getLength() {
      return content().length;
    }

    @Override
    public SeekableInputStream newStream() {
      return new BytesStream(content());
    }

    @Override
    public String location() {
      return location;
    }

    @Override
    public boolean exists() {
      return send("HEAD", location, null, false).statusCode() == 200;
    }

    private byte[] content() {
      HttpResponse<byte[]> response = send("GET", location, null, false);
      check(response, location);
      return response.body();
    }
  }

  private final class BlobOutput implements OutputFile {
    private final String location;

    private BlobOutput(String location) {
      this.location = location;
    }

    @Override
    public PositionOutputStream create() {
      return new Upload(location, true);
    }

    @Override
    public PositionOutputStream createOrOverwrite() {
      return new Upload(location, false);
    }

    @Override
    public String location() {
      return location;
    }

    @Override
    public InputFile toInputFile() {
      return isBlob(location) ? new BlobInput(location) : Files.localInput(location.replaceFirst("^file:/+", "/"));
    }
  }

  private final class Upload extends PositionOutputStream {
    private final String location;
    private final boolean create;
    private final ByteArrayOutputStream content = new ByteArrayOutputStream();
    private boolean closed = false;

    private Upload(String location, boolean create) {
      this.location = location;
      this.create = create;
    }

    @Override
    public long getPos() {
      return content.size();
    }

    @Override
    public void write(int value) {
      content.write(value);
    }

    @Override
    public void write(byte[] bytes, int from, int count) {
      content.write(bytes, from, count);
    }

    @Override
    public void close() {
      if (closed) {
        return;
      }
      closed = true;
      HttpResponse<byte[]> response = send("PUT", location, content.toByteArray(), create);
      if (response.statusCode() == 409 || response.statusCode() == 412) {
        throw new AlreadyExistsException("blob %s is there already", location);
      }
      check(response, location);
    }
  }

  private static final class BytesStream extends SeekableInputStream {
    private final byte[] bytes;
    private int at = 0;

    private BytesStream(byte[] bytes) {
      this.bytes = bytes;
    }

    @Override
    public long getPos() {
      return at;
    }

    @Override
    public void seek(long position) {
      at = (int) position;
    }

    @Override
    public int read() {
      return at < bytes.length ? bytes[at++] & 0xff : -1;
    }

    @Override
    public int read(byte[] into, int from, int count) {
      if (count == 0) {
        return 0;
      }
      int read = Math.min(count, bytes.length - at);
      if (read <= 0) {
        return -1;
      }
      System.arraycopy(bytes, at, into, from, read);
      at += read;
      return read;
    }
  }
}
