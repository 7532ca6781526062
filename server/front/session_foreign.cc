// Clients that speak another protocol than Redis's.
#include <leasehold/server/front/session.h>

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

namespace leasehold::server {
namespace {

/// Between two lines of the log about one kind.
constexpr std::chrono::nanoseconds kWarningPause = std::chrono::seconds(10);

void warn(ServerState& state, std::atomic<std::int64_t>& next_warning, const std::string& text) {
  const std::int64_t now = coarse_now().count();
  std::int64_t next = next_warning.load(std::memory_order_relaxed);
  if (!state.options.notice || now < next ||
      !next_warning.compare_exchange_strong(next, now + kWarningPause.count())) {
    return;
  }
  state.options.notice(text + ". This is said once in ten seconds at most");
}

}  // namespace

/// Without a reply, which would only help the page that is behind it.
void Session::end_http() {
  closing_ = true;
  context_.counters->http_requests.add();
  warn(context_.state, context_.state.next_http_warning,
       fmt::format("possible cross-protocol scripting attack: {} sent HTTP to the client port, and "
                   "was closed",
                   address_));
}

/// Without a reply, which the client could not read: it waits for a record of TLS.
void Session::end_tls() {
  closing_ = true;
  context_.counters->protocol_errors.add();
  warn(context_.state, context_.state.next_tls_warning,
       fmt::format("{} sent TLS where the client port does not speak it, and was closed: see "
                   "--client-tls",
                   address_));
}

}  // namespace leasehold::server
