#include <leasehold/cli/exit_status.h>
#include <leasehold/cli/holder_flags.h>
#include <leasehold/server/front/duration.h>

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <functional>
#include <utility>

namespace leasehold::cli {
namespace {

using lease::Duration;

/// Nobody stops in less.
constexpr Duration kMarginMin = std::chrono::milliseconds(10);

Error wrong(std::string text) {
  return {ErrorCode::invalid_argument, std::move(text)};
}

std::string host_name() {
  char host[200] = "localhost";
  gethostname(host, sizeof host - 1);
  return host;
}

/// A unique name, although two holders may give the same text: it adds the process id and the start
/// of the process by the holder clock. A grant whose answer was lost is recognised by it.
std::string own_name(const std::string& text, const lease::Clock& clock) {
  return fmt::format("{}:{}:{}", text, getpid(), clock.holder_now().since_origin().count());
}

}  // namespace

void HolderFlags::add(Flags& flags) {
  flags.add_servers(servers);
  flags.add({"--holder", "TEXT",
             "Name of the holder that others see (default: the host); the process id is added"},
            holder_);
  flags.add({"--ttl", "DURATION", "How long the lease lives after its last renewal", "10s"},
            timing_.ttl);
  flags.add({"--margin", "DURATION", "How long the holder may take to stop", "1s"}, timing_.margin);
  flags.add({"--renew", "DURATION", "How often to renew (default: a third of the usable time)"},
            [this](const std::string& text) -> Result<void> {
              const auto renewal = server::parse_duration(text);
              if (!renewal) return renewal.error();
              renewal_ = renewal.value();
              return {};
            });
  flags.add(
      {"--max-round-trip", "DURATION", "The longest round trip of a healthy renewal", "500ms"},
      timing_.max_round_trip);
  flags.add({"--max-clock-drift", "FRACTION", "Largest rate error of the clocks", "0.1"},
            [this](const std::string& text) -> Result<void> {
              const auto ppm = server::parse_scaled(text, 1'000'000);
              // What is larger might not fit the sums of timing().
              if (!ppm || *ppm > 500'000) {
                return wrong("expected a fraction like 0.1, at most 0.5");
              }
              timing_.max_clock_drift_ppm = *ppm;
              return {};
            });
}

void HolderFlags::add_wait(Flags& flags) {
  flags.add({"--wait", "DURATION", "How long to wait while another holds it (default: forever)"},
            wait_);
}

Result<grant::HolderTiming> HolderFlags::timing() const {
  grant::HolderTiming timing = timing_;
  if (timing.margin < kMarginMin) {
    return wrong("--margin: the holder needs 10ms or more to stop");
  }
  timing.renewal = renewal_.value_or(std::max(timing.usable() / 3, Duration(1)));
  if (auto valid = timing.validate(); !valid) return valid.error();
  return timing;
}

Result<client::LeaseHolder::Options> HolderFlags::options(const lease::Clock& clock) const {
  const auto checked = timing();
  if (!checked) return checked.error();
  client::LeaseHolder::Options options;
  options.holder = own_name(holder_.empty() ? host_name() : holder_, clock);
  options.timing = checked.value();
  options.wait = wait_;
  options.seed = std::hash<std::string>()(options.holder) ^ std::hash<std::string>()(host_name());
  return options;
}

void add_term(Flags& flags, const Flag& flag, Duration most,
              grant::LeaseTerms::Milliseconds& term) {
  using Milliseconds = grant::LeaseTerms::Milliseconds;
  flags.add(flag, [most, &term](const std::string& text) -> Result<void> {
    const auto given = server::parse_duration(text);
    if (!given) return given.error();
    if (given.value() > most || given.value() % Duration(Milliseconds(1)) != Duration(0)) {
      return wrong("expected whole milliseconds, at most " + server::format_duration(most));
    }
    term = std::chrono::duration_cast<Milliseconds>(given.value());
    return {};
  });
}

int status_of_refusal(const Error& error) {
  switch (error.code) {
    case ErrorCode::invalid_argument: return kUsage;
    case ErrorCode::in_use: return kNo;
    default: return kNotExecuted;
  }
}

}  // namespace leasehold::cli
