// Requests of HTTP as values: what a page or a monitor asks, and the bytes that answer it.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leasehold::server {

/// A request with the method GET or HEAD. Everything in it is a stranger's text.
struct HttpRequest {
  std::string path;                          ///< without the query
  std::map<std::string, std::string> query;  ///< decoded; of a name that comes twice the first
  std::string host;                          ///< the header; empty: there is none
  std::string origin;                        ///< the header; empty: there is none
};

struct HttpAnswer {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};
};

/// The syntax of HTTP, which is cpp-httplib's. Of that library it uses neither sockets nor threads
/// nor limits of time: the library would hold a thread for each slow client, and bounds neither the
/// number of headers nor the time of a request. It sees one complete head in memory and nothing
/// behind it, so a body, a chunk or a compressed bomb cannot reach it. One thread at a time.
class HttpEngine {
 public:
  using Handler = std::function<HttpAnswer(const HttpRequest&)>;
  /// `handler` is asked inside of respond().
  explicit HttpEngine(Handler handler);
  ~HttpEngine();
  HttpEngine(const HttpEngine&) = delete;
  HttpEngine& operator=(const HttpEngine&) = delete;

  /// `head`: a request up to its empty line. Returns all bytes of the answer, which ends the
  /// connection: 400 for what is no request, 405 for other methods. Compressed if the client takes
  /// gzip.
  std::string respond(std::string_view head);

 private:
  class Server;
  std::unique_ptr<Server> server_;
};

/// An answer without a request: to one that is refused before its head was read.
std::string plain_answer(int status, std::string_view reason, std::string_view text);

}  // namespace leasehold::server
