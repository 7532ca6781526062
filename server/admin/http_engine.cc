#include <leasehold/server/admin/http_engine.h>

#include <fmt/format.h>
#include <httplib.h>

#include <algorithm>
#include <cstring>

namespace leasehold::server {
namespace {

/// A head that has arrived, and the bytes of its answer.
class MemoryStream final : public httplib::Stream {
 public:
  explicit MemoryStream(std::string_view head) : head_(head) {}
  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  ssize_t read(char* to, std::size_t size) override {
    const std::size_t count = std::min(size, head_.size());
    std::memcpy(to, head_.data(), count);
    head_.remove_prefix(count);
    return static_cast<ssize_t>(count);
  }
  ssize_t write(const char* from, std::size_t size) override {
    answer_.append(from, size);
    return static_cast<ssize_t>(size);
  }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return INVALID_SOCKET; }
  std::string take() { return std::move(answer_); }

 private:
  std::string_view head_;
  std::string answer_;
};

/// Before the library looks at them. A page of many overlapping ranges is many times a page; and of
/// its two ways to compress, one takes a hundred times as long as the other.
void plain_wishes(httplib::Request& request) {
  request.ranges.clear();
  request.headers.erase("Range");
  const bool gzip = request.get_header_value("Accept-Encoding").find("gzip") != std::string::npos;
  request.headers.erase("Accept-Encoding");
  if (gzip) request.set_header("Accept-Encoding", "gzip");
}

}  // namespace

class HttpEngine::Server final : public httplib::Server {
 public:
  explicit Server(HttpEngine::Handler handler) : handler_(std::move(handler)) {
    // Before the library's own routes, which are regular expressions over a stranger's text, and
    // before it reads a body.
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      answer(request, response);
      return HandlerResponse::Handled;
    });
  }
  std::string respond(std::string_view head) {
    MemoryStream stream(head);
    bool closed = true;
    static_cast<void>(process_request(stream, true, closed, plain_wishes));
    return stream.take();
  }

 private:
  void answer(const httplib::Request& request, httplib::Response& response) {
    response.set_header("X-Content-Type-Options", "nosniff");
    response.set_header("Cache-Control", "no-store");
    if (request.method != "GET" && request.method != "HEAD") {
      response.status = 405;
      response.set_header("Allow", "GET, HEAD");
      response.set_content("only GET and HEAD are answered here\n", "text/plain; charset=utf-8");
      return;
    }
    HttpRequest wanted;
    wanted.path = request.path;
    for (const auto& [name, value] : request.params) wanted.query.emplace(name, value);
    wanted.host = request.get_header_value("Host");
    wanted.origin = request.get_header_value("Origin");
    const HttpAnswer made = handler_(wanted);
    response.status = made.status;
    for (const auto& [name, value] : made.headers) response.set_header(name, value);
    response.set_content(made.body, made.type);
  }

  const HttpEngine::Handler handler_;
};

HttpEngine::HttpEngine(Handler handler) : server_(std::make_unique<Server>(std::move(handler))) {}
HttpEngine::~HttpEngine() = default;

std::string HttpEngine::respond(std::string_view head) {
  try {
    std::string answer = server_->respond(head);
    if (!answer.empty()) return answer;
  } catch (...) {
    // The library throws at some texts that are no requests.
  }
  return plain_answer(400, "Bad Request", "this is no request of HTTP that is answered here");
}

std::string plain_answer(int status, std::string_view reason, std::string_view text) {
  return fmt::format(
      "HTTP/1.1 {} {}\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\n"
      "Content-Length: {}\r\n\r\n{}\n",
      status, reason, text.size() + 1, text);
}

}  // namespace leasehold::server
