// Options by name: every text comes from outside, so each is checked here or by Node::open().
#include <leasehold/base/result.h>
#include <leasehold/c/answers.h>
#include <leasehold/c/options.h>

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace leasehold::c {
namespace {

using node::NodeOptions;

Error wrong(std::string_view name, std::string_view value, const char* wanted) {
  return Error{ErrorCode::invalid_argument, fmt::format("{}: '{}' is not {}", name, value, wanted)};
}

template <class Number>
std::optional<Number> number_of(std::string_view text) {
  Number number = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

Result<void> set_duration(std::string_view name, std::string_view value, lease::Duration& to) {
  struct Unit {
    std::string_view name;
    std::int64_t ns;
  };
  // "s" is the end of the others.
  constexpr std::array<Unit, 4> kUnits = {
      {{"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}}};
  for (const Unit& unit : kUnits) {
    if (!value.ends_with(unit.name)) continue;
    const auto number = number_of<std::int64_t>(value.substr(0, value.size() - unit.name.size()));
    if (!number || *number < 0 || *number > std::numeric_limits<std::int64_t>::max() / unit.ns) {
      break;
    }
    to = std::chrono::nanoseconds(*number * unit.ns);
    return {};
  }
  return wrong(name, value, "a duration: write a number with its unit, as in 500ms");
}

Result<void> set_switch(std::string_view name, std::string_view value, bool& to) {
  if (value != "on" && value != "off") return wrong(name, value, "on or off");
  to = value == "on";
  return {};
}

Result<void> add_peer(std::string_view name, std::string_view value, NodeOptions& options) {
  const std::size_t equals = value.find('=');
  const auto id = number_of<std::uint64_t>(value.substr(0, equals));
  if (equals == std::string_view::npos || !id || *id == 0 || equals + 1 == value.size()) {
    return wrong(name, value, "a member: write ID=HOST:PORT");
  }
  options.peers.push_back({raft::NodeId(*id), std::string(value.substr(equals + 1))});
  return {};
}

/// The protection follows from the files: certificates are the stronger one.
void use(net::PeerSecurity& security, std::string& file, std::string_view value,
         net::Protection protection) {
  file = value;
  if (security.dial != net::Protection::certificate) security.dial = protection;
}

/// None: there is no such option.
std::optional<Result<void>> set_security(std::string_view name, std::string_view value,
                                         net::PeerSecurity& security) {
  using net::Protection;
  if (name == "peer-key") {
    use(security, security.key_file, value, Protection::key);
  } else if (name == "tls-cert") {
    use(security, security.certificate_file, value, Protection::certificate);
  } else if (name == "tls-key") {
    use(security, security.certificate_key_file, value, Protection::certificate);
  } else if (name == "tls-ca") {
    use(security, security.authority_file, value, Protection::certificate);
  } else if (name == "tls-crl") {
    security.revoked_file = value;
  } else if (name == "plain-beyond-loopback") {
    return set_switch(name, value, security.plain_beyond_loopback);
  } else {
    return std::nullopt;
  }
  return Result<void>();
}

std::optional<Result<void>> set_timing(std::string_view name, std::string_view value,
                                       lease::Timing& timing) {
  if (name == "lease") return set_duration(name, value, timing.lease);
  if (name == "heartbeat") return set_duration(name, value, timing.heartbeat);
  if (name == "max-round-trip") return set_duration(name, value, timing.max_round_trip);
  if (name == "margin") return set_duration(name, value, timing.margin);
  if (name == "election-timeout") return set_duration(name, value, timing.election_timeout);
  if (name != "max-clock-drift") return std::nullopt;
  const auto ppm = number_of<std::int64_t>(value);
  if (!ppm) return wrong(name, value, "a number of parts per million");
  timing.max_clock_drift_ppm = *ppm;
  return Result<void>();
}

Result<void> set_option(std::string_view name, std::string_view value, NodeOptions& options) {
  if (auto set = set_timing(name, value, options.timing)) return *set;
  if (auto set = set_security(name, value, options.peer_security)) return *set;
  if (name == "id") {
    const auto id = number_of<std::uint64_t>(value);
    if (!id || *id == 0) return wrong(name, value, "a number above 0");
    options.id = raft::NodeId(*id);
    return {};
  }
  if (name == "log-tail") {
    const auto bytes = number_of<std::uint64_t>(value);
    if (!bytes) return wrong(name, value, "a number of bytes");
    options.limits.log_tail_bytes = *bytes;
    return {};
  }
  if (name == "peer") return add_peer(name, value, options);
  if (name == "witness") return set_switch(name, value, options.witness);
  if (name == "data-dir") {
    options.data_dir = value;
  } else if (name == "cluster") {
    options.cluster = value;
  } else if (name == "join") {
    options.join.emplace_back(value);
  } else if (name == "listen") {
    options.listen = value;
  } else if (name == "deputy") {
    options.deputy = value;
  } else {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("there is no option '{}': see leasehold_options_set()", name)};
  }
  return {};
}

}  // namespace
}  // namespace leasehold::c

leasehold_options* leasehold_options_new(void) {
  return new leasehold_options;
}

void leasehold_options_free(leasehold_options* options) {
  delete options;
}

int leasehold_options_set(leasehold_options* options, const char* name, const char* value,
                          leasehold_error* error) {
  if (options == nullptr || name == nullptr || value == nullptr) {
    return leasehold::c::fill(error, LEASEHOLD_INVALID_ARGUMENT,
                              "leasehold_options_set: an argument is NULL");
  }
  const auto set = leasehold::c::set_option(name, value, options->node);
  return set ? LEASEHOLD_OK : leasehold::c::fill(error, set.error());
}
