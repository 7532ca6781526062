#include <leasehold/bench/floors/null_replicate.h>

#include <leasehold/bench/floors/record_requests.h>
#include <leasehold/bench/socket.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iostream>
#include <utility>

namespace leasehold::bench {
namespace {

constexpr std::size_t kHeaderBytes = 12;
constexpr std::string_view kRecordReply = "+OK\r\n";

Result<void> announce(const Descriptor& listener) {
  sockaddr_in bound{};
  socklen_t length = sizeof bound;
  if (getsockname(listener.get(), reinterpret_cast<sockaddr*>(&bound), &length) != 0) {
    return system_error("getsockname");
  }
  std::array<char, INET_ADDRSTRLEN> host{};
  inet_ntop(AF_INET, &bound.sin_addr, host.data(), host.size());
  std::cout << "listening " << host.data() << ":" << ntohs(bound.sin_port) << std::endl;
  return {};
}

template <class T>
T load(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

std::string frame_of(std::uint64_t sequence, std::string_view records) {
  const auto length = static_cast<std::uint32_t>(records.size());
  std::string frame(kHeaderBytes, '\0');
  std::memcpy(frame.data(), &length, sizeof length);
  std::memcpy(frame.data() + sizeof length, &sequence, sizeof sequence);
  return frame.append(records);
}

/// One follower as the leader sees it.
struct Follower {
  Descriptor socket;
  std::uint64_t acknowledged = 0;
  std::string partial;
};

struct Client {
  Descriptor socket;
  std::string partial;
  std::string replies;  ///< of the batch, in the order of the requests
};

class NullLeader {
 public:
  NullLeader(Descriptor listener, RawLog log, std::vector<Follower> followers)
      : listener_(std::move(listener)), log_(std::move(log)), followers_(std::move(followers)) {}

  Result<void> run() {
    for (;;) {
      auto read = read_requests();
      if (!read) return read;
      if (!batch_.empty()) {
        auto replicated = replicate();
        if (!replicated) return replicated;
      }
      answer();
    }
  }

 private:
  /// Waits for clients and takes what they sent.
  Result<void> read_requests() {
    std::vector<pollfd> polled = {{listener_.get(), POLLIN, 0}};
    for (const Client& client : clients_) polled.push_back({client.socket.get(), POLLIN, 0});
    if (poll(polled.data(), polled.size(), -1) < 0) return system_error("poll");
    std::array<char, 64U << 10U> chunk;
    for (std::size_t i = 0; i + 1 < polled.size(); ++i) {
      if (polled[i + 1].revents == 0 || batch_.size() >= kNullBatchBytesMax) continue;
      Client& client = clients_[i];
      auto got = read_some(client.socket, chunk.data(), chunk.size());
      if (!got) {
        client.socket = Descriptor();
        continue;
      }
      client.partial.append(chunk.data(), got.value());
      take_requests(client);
    }
    clients_.erase(std::remove_if(clients_.begin(), clients_.end(),
                                  [](const Client& client) { return !client.socket.open(); }),
                   clients_.end());
    if (polled[0].revents != 0) {
      auto accepted = accept_tcp(listener_);
      if (!accepted) return accepted.error();
      clients_.push_back({std::move(accepted).value(), "", ""});
    }
    return {};
  }

  /// The complete ones.
  void take_requests(Client& client) {
    std::size_t taken = 0;
    for (;;) {
      const std::string_view rest = std::string_view(client.partial).substr(taken);
      const RecordRequest request = first_request(rest);
      if (request.kind == RecordRequest::Kind::incomplete) break;
      if (request.kind == RecordRequest::Kind::malformed) {
        client.socket = Descriptor();
        return;
      }
      if (request.kind == RecordRequest::Kind::record) {
        batch_.append(rest.substr(0, request.length));
        client.replies += kRecordReply;
      } else {
        client.replies += request.reply;
      }
      taken += request.length;
    }
    client.partial.erase(0, taken);
  }

  /// Returns when the batch is durable here and at one follower.
  Result<void> replicate() {
    ++sequence_;
    const std::string frame = frame_of(sequence_, batch_);
    for (const Follower& follower : followers_) {
      auto sent = write_all(follower.socket, frame);
      if (!sent) return sent;
    }
    auto written = log_.write(batch_);
    if (!written) return written;
    auto synced = log_.sync();
    if (!synced) return synced;
    batch_.clear();
    const auto done = [this](const Follower& f) { return f.acknowledged >= sequence_; };
    while (std::none_of(followers_.begin(), followers_.end(), done)) {
      auto read = read_acknowledgements();
      if (!read) return read;
    }
    return {};
  }

  Result<void> read_acknowledgements() {
    std::vector<pollfd> polled;
    for (const Follower& follower : followers_) {
      polled.push_back({follower.socket.get(), POLLIN, 0});
    }
    if (poll(polled.data(), polled.size(), -1) < 0) return system_error("poll");
    std::array<char, 4096> chunk;
    for (std::size_t i = 0; i < polled.size(); ++i) {
      if (polled[i].revents == 0) continue;
      Follower& follower = followers_[i];
      auto got = read_some(follower.socket, chunk.data(), chunk.size());
      if (!got) return got.error();
      follower.partial.append(chunk.data(), got.value());
      while (follower.partial.size() >= sizeof(std::uint64_t)) {
        follower.acknowledged = load<std::uint64_t>(follower.partial.data());
        follower.partial.erase(0, sizeof(std::uint64_t));
      }
    }
    return {};
  }

  void answer() {
    for (Client& client : clients_) {
      // A client that is gone is noticed at its next read.
      if (!client.replies.empty()) static_cast<void>(write_all(client.socket, client.replies).ok());
      client.replies.clear();
    }
  }

  Descriptor listener_;
  RawLog log_;
  std::vector<Follower> followers_;
  std::vector<Client> clients_;
  std::string batch_;
  std::uint64_t sequence_ = 0;
};

}  // namespace

Result<void> serve_null_follower(const NullReplicateOptions& options) {
  auto log = RawLog::create(options.log_path, options.log_bytes, options.growth);
  if (!log) return log.error();
  auto listener = listen_tcp(options.listen);
  if (!listener) return listener.error();
  auto announced = announce(listener.value());
  if (!announced) return announced;
  auto leader = accept_tcp(listener.value());
  if (!leader) return leader.error();

  std::string input;
  std::array<char, 64U << 10U> chunk;
  for (;;) {
    auto got = read_some(leader.value(), chunk.data(), chunk.size());
    if (!got && got.error().code == ErrorCode::stopped) return {};
    if (!got) return got.error();
    input.append(chunk.data(), got.value());
    std::uint64_t newest = 0;
    while (input.size() >= kHeaderBytes) {
      const auto length = load<std::uint32_t>(input.data());
      if (input.size() < kHeaderBytes + length) break;
      auto written = log.value().write(std::string_view(input).substr(kHeaderBytes, length));
      if (!written) return written;
      newest = load<std::uint64_t>(input.data() + sizeof length);
      input.erase(0, kHeaderBytes + length);
    }
    if (newest == 0) continue;
    auto synced = log.value().sync();
    if (!synced) return synced;
    const std::string_view bytes(reinterpret_cast<const char*>(&newest), sizeof newest);
    auto sent = write_all(leader.value(), bytes);
    if (!sent) return sent;
  }
}

Result<void> serve_null_leader(const NullReplicateOptions& options,
                               const std::vector<std::string>& addresses) {
  std::vector<Follower> followers;
  for (const std::string& address : addresses) {
    auto connected = connect_tcp(address);
    if (!connected) return connected.error();
    followers.push_back({std::move(connected).value(), 0, ""});
  }
  auto log = RawLog::create(options.log_path, options.log_bytes, options.growth);
  if (!log) return log.error();
  auto listener = listen_tcp(options.listen);
  if (!listener) return listener.error();
  auto announced = announce(listener.value());
  if (!announced) return announced;
  NullLeader leader(std::move(listener).value(), std::move(log).value(), std::move(followers));
  return leader.run();
}

}  // namespace leasehold::bench
