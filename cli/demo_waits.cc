#include <leasehold/cli/demo_waits.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace leasehold::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kReadInterval{2};
constexpr std::chrono::milliseconds kWriteInterval{5};
constexpr client::RespClient::Timeout kCallTimeout{5000};

}  // namespace

Result<void> Waits::start(const std::vector<std::string>& addresses) {
  for (std::size_t node = 0; node < addresses.size(); ++node) {
    for (const bool writes : {false, true}) {
      auto client = client::RespClient::connect(addresses[node], kCallTimeout);
      if (!client) return client.error();
      clients_.push_back({std::move(client).value(), node + 1, writes});
    }
  }
  for (Client& client : clients_) {
    threads_.emplace_back([this, &client] { run(client); });
  }
  return {};
}

void Waits::stop() {
  stopping_ = true;
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

Waits::Longest Waits::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(longest_, {});
}

std::string Waits::problem() const {
  const std::lock_guard lock(mutex_);
  return problem_;
}

void Waits::run(Client& client) {
  auto due = Clock::now();
  for (std::size_t number = 0; !stopping_; ++number) {
    due = std::max(due + (client.writes ? kWriteInterval : kReadInterval), Clock::now());
    std::this_thread::sleep_until(due);
    const auto begun = Clock::now();
    const std::string wrong = make_request(client, number);
    const double ms = std::chrono::duration<double, std::milli>(Clock::now() - begun).count();
    ++requests_;
    const std::lock_guard lock(mutex_);
    double& longest = client.writes ? longest_.write_ms : longest_.read_ms;
    longest = std::max(longest, ms);
    if (wrong.empty()) continue;
    if (problem_.empty()) problem_ = wrong;
    return;
  }
}

std::string Waits::make_request(Client& client, std::size_t number) {
  if (!client.writes) {
    const auto reply = client.client.call({"GET", key_}, kCallTimeout);
    if (!reply) return "GET: " + reply.error().message;
    const bool right =
        reply.value().kind == client::RespValue::Kind::bulk && reply.value().text == value_;
    return right ? "" : "GET was answered: " + reply.value().text;
  }
  const std::string key = fmt::format("waits{}:{}", client.node, number % 100);
  const std::string value = std::to_string(number);
  const auto reply = client.client.call({"SET", key, value}, kCallTimeout);
  if (!reply) return "SET: " + reply.error().message;
  if (reply.value().kind != client::RespValue::Kind::simple) {
    return "SET was answered: " + reply.value().text;
  }
  const std::lock_guard lock(mutex_);
  written_[key] = value;
  return "";
}

}  // namespace leasehold::cli
