#include <leasehold/server/front/greetings.h>
#include <leasehold/server/front/people_time.h>

#include <fmt/format.h>
#include <asio/post.hpp>

#include <array>

namespace leasehold::server {

namespace {

/// Pause between two log lines about handshakes that failed.
constexpr std::chrono::seconds kSayAgain{10};

}  // namespace

struct Greetings::Newcomer {
  Newcomer(ClientChannel its_channel, std::string its_address)
      : channel(std::move(its_channel)), address(std::move(its_address)) {}
  ClientChannel channel;
  std::string address;
  std::uint64_t number = 0;  ///< in all_
  std::uint64_t clock = 0;   ///< its number in timed_; 0: it is not there
  std::chrono::nanoseconds arrived = coarse_now();
  std::chrono::nanoseconds begun{0};  ///< the handshake
  bool waits_for_turn = false;
  bool failed = false;
  bool ended = false;
};

void Greetings::begin(ClientChannel::Socket socket, std::string address, ClientTls::Mode mode) {
  const bool only_tls = mode == ClientTls::Mode::on;
  const auto newcomer =
      std::make_shared<Newcomer>(ClientChannel(std::move(socket), only_tls), std::move(address));
  newcomer->number = next_++;
  if (closed_) return end(newcomer);
  asio::error_code ignored;
  newcomer->channel.socket().set_option(asio::ip::tcp::no_delay(true), ignored);
  newcomer->channel.socket().non_blocking(true, ignored);
  all_.emplace(newcomer->number, newcomer);
  // One without TLS may take its time before its first request.
  if (only_tls) start_clock(newcomer);
  wait(newcomer, ClientChannel::Socket::wait_read);
}

void Greetings::start_clock(const NewcomerPtr& newcomer) {
  if (newcomer->clock != 0) return;
  make_room();
  newcomer->clock = next_++;
  newcomer->begun = coarse_now();
  timed_.emplace(newcomer->clock, newcomer);
}

void Greetings::make_room() {
  if (timed_.size() < kGreetingsMax) return;
  for (const auto& [number, oldest] : timed_) {
    if (oldest->waits_for_turn) continue;
    counters_.tls_failed_crowded.add();
    return end(NewcomerPtr(oldest));
  }
}

void Greetings::wait(const NewcomerPtr& newcomer, asio::socket_base::wait_type what) {
  if (newcomer->ended) return;
  newcomer->channel.socket().async_wait(what, [this, newcomer](asio::error_code error) {
    if (newcomer->ended) return;
    if (error) return end(newcomer);
    if (newcomer->failed) return drop_input(newcomer);
    take_turn_later(newcomer);
  });
}

void Greetings::take_turn_later(const NewcomerPtr& newcomer) {
  newcomer->waits_for_turn = true;
  turns_.push_back(newcomer);
  if (!std::exchange(turn_scheduled_, true)) asio::post(io_, [this] { run_turn(); });
}

void Greetings::run_turn() {
  const NewcomerPtr newcomer = std::move(turns_.front());
  turns_.pop_front();
  turn_scheduled_ = !turns_.empty();
  if (turn_scheduled_) asio::post(io_, [this] { run_turn(); });
  newcomer->waits_for_turn = false;
  if (!newcomer->ended) take_step(newcomer);
}

void Greetings::take_step(const NewcomerPtr& newcomer) {
  ClientChannel& channel = newcomer->channel;
  const Greeting greeting = channel.greet(state_.client_tls, state_.options.cluster);
  if (channel.has_tls()) start_clock(newcomer);
  switch (greeting.state) {
    case Greeting::State::waits_to_read: return wait(newcomer, ClientChannel::Socket::wait_read);
    case Greeting::State::waits_to_write: return wait(newcomer, ClientChannel::Socket::wait_write);
    case Greeting::State::ended: return end(newcomer);
    case Greeting::State::failed: return fail(newcomer, greeting);
    case Greeting::State::done: break;
  }
  if (channel.has_tls()) {
    counters_.tls_handshakes.add();
    if (channel.resumed()) counters_.tls_resumed.add();
  }
  newcomer->ended = true;
  all_.erase(newcomer->number);
  timed_.erase(newcomer->clock);
  welcome_(std::move(channel), std::move(newcomer->address));
}

void Greetings::fail(const NewcomerPtr& newcomer, const Greeting& greeting) {
  (counters_.*greeting.failure).add();
  note_failure(newcomer->address, greeting.problem);
  newcomer->failed = true;
  start_clock(newcomer);
  newcomer->channel.shut_down_sending();
  drop_input(newcomer);
}

void Greetings::drop_input(const NewcomerPtr& newcomer) {
  std::array<char, 4096> dropped;
  asio::error_code error;
  newcomer->channel.socket().read_some(asio::buffer(dropped), error);
  if (error && error != asio::error::would_block) return end(newcomer);
  wait(newcomer, ClientChannel::Socket::wait_read);
}

void Greetings::end_late() {
  const auto late = coarse_now() - kGreetingTimeMax;
  while (!timed_.empty() && timed_.begin()->second->begun < late) {
    const NewcomerPtr newcomer = timed_.begin()->second;
    if (!newcomer->failed) counters_.tls_failed_late.add();
    end(newcomer);
  }
  const auto idle = state_.live.idle_timeout();
  if (idle <= lease::Duration(0)) return;
  for (auto at = all_.begin(); at != all_.end() && coarse_now() - at->second->arrived > idle;) {
    const NewcomerPtr newcomer = (at++)->second;
    if (newcomer->clock != 0) continue;
    counters_.connections_idle.add();
    end(newcomer);
  }
}

Greetings::NewcomerPtr Greetings::find_oldest() const {
  for (const auto& [number, newcomer] : all_) {
    if (!newcomer->waits_for_turn) return newcomer;
  }
  return nullptr;
}

std::optional<std::chrono::nanoseconds> Greetings::oldest() const {
  const NewcomerPtr found = find_oldest();
  return found ? std::optional(found->arrived) : std::nullopt;
}

void Greetings::end_oldest() {
  if (const NewcomerPtr found = find_oldest()) end(found);
}

void Greetings::close_all() {
  closed_ = true;
  while (!all_.empty()) end(NewcomerPtr(all_.begin()->second));
}

void Greetings::end(const NewcomerPtr& newcomer) {
  if (std::exchange(newcomer->ended, true)) return;
  all_.erase(newcomer->number);
  timed_.erase(newcomer->clock);
  newcomer->channel.close();
  state_.clients.fetch_sub(1, std::memory_order_relaxed);
}

void Greetings::note_failure(const std::string& address, std::string_view problem) {
  ++failed_;
  const auto now = coarse_now();
  const bool soon = failure_said_.count() != 0 && now - failure_said_ < kSayAgain;
  if (!state_.options.notice || soon) return;
  state_.options.notice(
      fmt::format("{} TLS handshake{} with clients failed since the last such line; this one with "
                  "{}: {}",
                  failed_, failed_ == 1 ? "" : "s", address, problem));
  failed_ = 0;
  failure_said_ = now;
}

}  // namespace leasehold::server
