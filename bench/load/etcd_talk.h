// etcd's v3 API: unary calls of gRPC, each a stream of HTTP/2, without TLS.
//
// Not by etcd's JSON gateway: that costs etcd a proxy and a second connection for each request, so
// it would not be etcd that is measured. And not by libgrpc++: its threads and queues would be
// measured with it, and it has six packages. libnghttp2 knows frames, and nothing of sockets or
// threads.
#pragma once

#include <leasehold/bench/load/talk.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::bench {

class EtcdTalk final : public Talk {
 public:
  /// `serializable`: reads are of the member's own state, which may be old; else they are
  /// linearizable. `authority`: host:port of the server.
  EtcdTalk(std::string authority, bool serializable);
  ~EtcdTalk() override;
  EtcdTalk(const EtcdTalk&) = delete;
  EtcdTalk& operator=(const EtcdTalk&) = delete;

  void ask(const Request& request, std::uint64_t number, std::string& output) override;
  /// Asks which member this is, and who leads: the text of the reply is a StatusResponse.
  void ask_status(std::uint64_t number);
  void take_output(std::string& output) override;
  /// An error of etcd is a reply whose first word is the name of its code (UNAVAILABLE). So is what
  /// is wrong with one stream: RESET, HTTP_502, NO_STATUS, MALFORMED.
  Result<void> arrived(std::string_view bytes, Replies& replies) override;
  bool ending() const override;

 private:
  struct Session;
  std::unique_ptr<Session> session_;
};

}  // namespace leasehold::bench
