// A few questions to a member of etcd, one after the other, on a socket that blocks.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/bench/load/etcd_talk.h>
#include <leasehold/bench/socket.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace leasehold::bench {

/// What a member says of itself.
struct EtcdMember {
  std::string version;
  std::uint64_t id = 0;
  std::uint64_t leader = 0;  ///< as far as it knows; 0: it knows none
};

/// One thread. Every error says what to do about it.
class EtcdClient {
 public:
  /// Errors: unavailable, invalid_argument (no address).
  static Result<EtcdClient> connect(const std::string& address);

  /// Errors: unavailable (no answer), invalid_argument (the server is not etcd v3, wants TLS, or
  /// refuses clients without a login).
  Result<EtcdMember> member();
  /// Whether a key may be read. Errors: as above.
  Result<void> try_read();

 private:
  EtcdClient(std::string address, Descriptor socket);
  Result<std::string> call(const std::function<void(std::uint64_t number, std::string&)>& submit);

  std::string address_;
  Descriptor socket_;
  std::unique_ptr<EtcdTalk> talk_;
  std::uint64_t asked_ = 0;
};

/// The ones of `servers` that lead by the words of the members, or that do not: `leaders`. All of
/// them where no leader is among them.
std::vector<std::string> etcd_servers(const std::vector<std::string>& servers,
                                      const std::vector<EtcdMember>& members, bool leaders);

}  // namespace leasehold::bench
