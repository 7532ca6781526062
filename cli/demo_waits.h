// For the demo: how long requests wait, at every node, while something happens.
#pragma once

#include <leasehold/client/resp_client.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace leasehold::cli {

/// A reader and a writer at each node, each on a thread of its own: a read every 2 ms, a write
/// every 5 ms. While one waits, its client makes no other.
class Waits {
 public:
  /// Readers read `key` and expect `value`.
  Waits(std::string key, std::string value) : key_(std::move(key)), value_(std::move(value)) {}
  ~Waits() { stop(); }
  Waits(const Waits&) = delete;
  Waits& operator=(const Waits&) = delete;

  /// Errors: those of client::RespClient::connect().
  Result<void> start(const std::vector<std::string>& addresses);
  void stop();

  struct Longest {
    double read_ms = 0;
    double write_ms = 0;
  };
  /// The longest waits of requests that have ended since the last call.
  Longest take();

  /// The answer to the first request that was refused or answered wrongly. Empty: none.
  std::string problem() const;
  /// What was acknowledged. After stop().
  const std::map<std::string, std::string>& written() const { return written_; }
  std::size_t requests() const { return requests_; }

 private:
  struct Client {
    client::RespClient client;
    std::size_t node;
    bool writes;
  };
  void run(Client& client);
  /// The text of what is wrong with the reply.
  std::string make_request(Client& client, std::size_t number);

  const std::string key_;
  const std::string value_;
  std::deque<Client> clients_;
  std::vector<std::thread> threads_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::size_t> requests_{0};
  mutable std::mutex mutex_;
  Longest longest_;                             ///< guarded by mutex_
  std::string problem_;                         ///< guarded by mutex_
  std::map<std::string, std::string> written_;  ///< guarded by mutex_
};

}  // namespace leasehold::cli
