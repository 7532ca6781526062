#include <leasehold/sim/plan/plan_text.h>

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

namespace leasehold::sim {
namespace {

constexpr std::string_view kFormat = "leasehold-plan";
constexpr std::uint64_t kVersion = 1;
constexpr std::uint64_t kNodesMin = 3;
constexpr std::uint64_t kNodesMax = 9;

/// What a value may be, both ends included.
struct Range {
  std::int64_t low = 0;
  std::int64_t high = 0;
};
constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kHour = 3'600'000 * kMillisecond;
constexpr Range kTime{0, kHour};
constexpr Range kSideGroups{0, 8};
constexpr Range kPositiveTime{kMillisecond, kHour};
constexpr Range kPercent{0, 100};
constexpr Range kPpm{0, 1'000'000};
constexpr Range kClients{0, 1'000};
constexpr Range kNames{1, 1'000};
constexpr Range kBytes{0, std::int64_t{1} << 40U};
constexpr Range kPositiveBytes{1, std::int64_t{1} << 40U};
constexpr Range kFew{1, 1'000};
constexpr Range kDrift{0, 999'999};
constexpr Range kFlag{0, 1};
constexpr Range kAny{0, std::int64_t{1} << 62U};

/// Calls `see` with every field and its name, without the nodes and the set of faults.
template <class See, class OnePlan>
void each_field(See& see, OnePlan& plan) {
  see("seed", plan.seed, kAny);
  see("founders", plan.founders, Range{kNodesMin, kNodesMax});
  see("link.delay_min", plan.link.delay_min, kTime);
  see("link.delay_max", plan.link.delay_max, kTime);
  see("link.loss_ppm", plan.link.loss_ppm, kPpm);
  see("link.duplicate_ppm", plan.link.duplicate_ppm, kPpm);
  see("link.spike_ppm", plan.link.spike_ppm, kPpm);
  see("link.spike_max", plan.link.spike_max, kTime);
  see("link.keeps_order", plan.link.keeps_order, kFlag);
  see("link.echo_percent", plan.link.echo_percent, kPercent);
  see("disk.sync_min", plan.disk.sync_min, kTime);
  see("disk.sync_max", plan.disk.sync_max, kTime);
  see("disk.stall_ppm", plan.disk.stall_ppm, kPpm);
  see("disk.stall_max", plan.disk.stall_max, kTime);
  see("disk.loses_unsynced", plan.disk.loses_unsynced, kFlag);
  see("disk.error_ppm", plan.disk.error_ppm, kPpm);
  see("disk.full_max", plan.disk.full_max, kTime);
  see("snapshots.work_min", plan.snapshots.work_min, kTime);
  see("snapshots.work_max", plan.snapshots.work_max, kTime);
  see("snapshots.flushes", plan.snapshots.flushes, kFlag);
  see("snapshots.failure_ppm", plan.snapshots.failure_ppm, kPpm);
  see("snapshots.crash_ppm", plan.snapshots.crash_ppm, kPpm);
  see("snapshots.quick_return", plan.snapshots.quick_return, kFlag);
  see("snapshots.held_percent", plan.snapshots.held_percent, kPercent);
  see("drift_ppm_max", plan.drift_ppm_max, kDrift);
  see("drift_unbounded", plan.drift_unbounded, kFlag);
  see("drift_extreme", plan.drift_extreme, kFlag);
  see("drift_against_leader", plan.drift_against_leader, kFlag);
  see("fault_interval", plan.fault_interval, kPositiveTime);
  see("straggler_interval", plan.straggler_interval, kPositiveTime);
  see("transfer_interval", plan.transfer_interval, kTime);
  see("member_change_interval", plan.member_change_interval, kTime);
  see("cut_demand_interval", plan.cut_demand_interval, kTime);
  see("settings.change_interval", plan.settings.change_interval, kTime);
  see("settings.agreed", plan.settings.agreed, kFlag);
  see("settings.other_drift_percent", plan.settings.other_drift_percent, kPercent);
  see("settings.drift_ppm_without_leases", plan.settings.drift_ppm_without_leases, kDrift);
  see("settings.lease_reads", plan.settings.first.lease_reads, kFlag);
  see("beats.shared", plan.beats.shared, kFlag);
  see("beats.side_groups", plan.beats.side_groups, kSideGroups);
  see("beats.idle_percent", plan.beats.idle_percent, kPercent);
  see("beats.silence_interval", plan.beats.silence_interval, kTime);
  see("beats.silence_max", plan.beats.silence_max, kTime);
  see("deputies.percent", plan.deputies.percent, kPercent);
  see("deputies.delay_max", plan.deputies.delay_max, kTime);
  see("deputies.loss_percent", plan.deputies.loss_percent, kPercent);
  see("deputies.repeat_percent", plan.deputies.repeat_percent, kPercent);
  see("crash_at_send_ppm", plan.crash_at_send_ppm, kPpm);
  see("young_leader_percent", plan.young_leader_percent, kPercent);
  see("hunt_percent", plan.hunt_percent, kPercent);
  see("duel", plan.duel, kFlag);
  see("wake_percent", plan.wake_percent, kPercent);
  see("crash_at_persist_ppm", plan.crash_at_persist_ppm, kPpm);
}

/// Of the clients.
template <class See, class OnePlan>
void each_client_field(See& see, OnePlan& plan) {
  see("workload.clients", plan.workload.clients, kClients);
  see("workload.keys", plan.workload.keys, kNames);
  see("workload.read_percent", plan.workload.read_percent, kPercent);
  see("workload.quiet_period", plan.workload.quiet_period, kTime);
  see("workload.all_quiet", plan.workload.all_quiet, kFlag);
  see("workload.think_max", plan.workload.think_max, kTime);
  see("workload.patience", plan.workload.patience, kPositiveTime);
  see("workload.quorum_percent", plan.workload.quorum_percent, kPercent);
  see("workload.watchers", plan.workload.watchers, kClients);
  see("workload.reader_pause_ppm", plan.workload.reader_pause_ppm, kPpm);
  see("workload.reader_pause_max", plan.workload.reader_pause_max, kTime);
  see("sessions.clients", plan.sessions.clients, kClients);
  see("sessions.outstanding_max", plan.sessions.outstanding_max, kFew);
  see("sessions.think_max", plan.sessions.think_max, kTime);
  see("sessions.double_percent", plan.sessions.double_percent, kPercent);
  see("sessions.idle_max", plan.sessions.idle_max, kTime);
  see("leases.clients", plan.leases.clients, kClients);
  see("leases.names", plan.leases.names, kNames);
  see("leases.ttl", plan.leases.ttl, kTime);
  see("leases.margin", plan.leases.margin, kTime);
  see("leases.grace_max", plan.leases.grace_max, kTime);
  see("leases.delay_max", plan.leases.delay_max, kTime);
  see("leases.drift_ppm", plan.leases.drift_ppm, kDrift);
  see("leases.watchers", plan.leases.watchers, kClients);
  see("leases.look_max", plan.leases.look_max, kTime);
  see("leases.events_max", plan.leases.events_max, kBytes);
  see("key_locks.clients", plan.key_locks.clients, kClients);
  see("key_locks.keys", plan.key_locks.keys, kNames);
  see("key_locks.ttl", plan.key_locks.ttl, kTime);
  see("key_locks.margin", plan.key_locks.margin, kTime);
}

/// Of the driver: the limits that draw_plan() draws.
template <class See, class OneDriver>
void each_limit(See& see, OneDriver& driver) {
  see("driver.cache_bytes_max", driver.cache_bytes_max, kBytes);
  see("driver.append_bytes_max", driver.append_bytes_max, kPositiveBytes);
  see("driver.apply_bytes_max", driver.apply_bytes_max, kPositiveBytes);
  see("driver.applies_max", driver.applies_max, kFew);
  see("driver.apply_patience", driver.apply_patience, kPositiveTime);
  see("driver.inflight_messages_max", driver.core.inflight_messages_max, kFew);
  see("driver.commit_news_delay", driver.core.commit_news_delay, kTime);
  see("driver.log_tail_bytes", driver.log_tail_bytes, kBytes);
  see("driver.log_cut_bytes", driver.log_cut_bytes, kBytes);
  see("driver.log_age_max", driver.log_age_max, Range{0, 24 * kHour});
  see("driver.log_held_bytes_max", driver.log_held_bytes_max, kBytes);
  see("driver.snapshot_chunk_bytes", driver.snapshot_chunk_bytes, kPositiveBytes);
  see("driver.snapshot_window_bytes", driver.snapshot_window_bytes, kPositiveBytes);
  see("driver.snapshot_bytes_per_second", driver.snapshot_bytes_per_second, kBytes);
  see("driver.snapshot_patience", driver.snapshot_patience, kPositiveTime);
  see("driver.snapshot_keep", driver.snapshot_keep, kTime);
  see("driver.chunks_storing_max", driver.chunks_storing_max, kFew);
}

/// The names of the fields follow `prefix`.
template <class See, class OneTiming>
void each_time(See& see, const std::string& prefix, OneTiming& timing) {
  const auto of = [&](const char* name, auto& field, Range range) {
    see((prefix + name).c_str(), field, range);
  };
  of("lease", timing.lease, kTime);
  of("heartbeat", timing.heartbeat, kTime);
  of("max_clock_drift_ppm", timing.max_clock_drift_ppm, kDrift);
  of("max_round_trip", timing.max_round_trip, kTime);
  of("margin", timing.margin, kTime);
  of("election_timeout", timing.election_timeout, kTime);
}

template <class See, class OneNode>
void each_node_field(See& see, OneNode& node) {
  each_time(see, "timing.", node.timing);
  see("other_drift_ppm", node.other_drift_ppm, kDrift);
  see("witness", node.witness, kFlag);
  see("apply_min", node.apply_min, kTime);
  see("apply_max", node.apply_max, kTime);
  see("sync_max", node.sync_max, kTime);
  see("late_ppm", node.late_ppm, kPpm);
  see("late_max", node.late_max, kTime);
}

template <class See, class OnePlan>
void each_field_of_the_group(See& see, OnePlan& plan) {
  each_field(see, plan);
  each_time(see, "settings.", plan.settings.first.timing);
  each_client_field(see, plan);
  each_limit(see, plan.driver);
}

struct Writer {
  std::string& text;
  std::string before;

  template <class Field>
  void operator()(const char* name, const Field& field, Range) {
    if constexpr (std::is_same_v<Field, Duration>) {
      text += fmt::format("{}{} {}\n", before, name, field.count());
    } else {
      text += fmt::format("{}{} {}\n", before, name, static_cast<std::uint64_t>(field));
    }
  }
};

/// Takes the value of the one field that has the name.
struct Setter {
  std::string_view name;
  std::int64_t value = 0;
  bool found = false;
  std::optional<Range> missed;

  template <class Field>
  void operator()(const char* known, Field& field, Range range) {
    if (name != known) return;
    found = true;
    if (value < range.low || value > range.high) {
      missed = range;
    } else if constexpr (std::is_same_v<Field, Duration>) {
      field = Duration(value);
    } else {
      field = static_cast<Field>(value);
    }
  }
};

std::optional<std::int64_t> number_of(std::string_view text) {
  if (text.empty() || text.size() > 18) return std::nullopt;
  std::int64_t number = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + (c - '0');
  }
  return number;
}

/// Takes away the word before the first space.
std::string_view take_word(std::string_view& rest) {
  const std::size_t end = rest.find(' ');
  const std::string_view word = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  return word;
}

std::optional<FaultSet> faults_of(std::string_view text) {
  FaultSet set;
  while (!text.empty()) {
    const std::size_t end = text.find(',');
    const std::string_view word = text.substr(0, end);
    const auto fault = fault_class_of(word);
    if (!fault) return std::nullopt;
    set.add(*fault);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return set;
}

std::string names_of(FaultSet set) {
  std::string names;
  for (std::size_t i = 0; i < kFaultClasses; ++i) {
    const auto fault = static_cast<FaultClass>(i);
    if (set.has(fault)) names += (names.empty() ? "" : ",") + std::string(fault_class_name(fault));
  }
  return names;
}

/// What is wrong with a value; empty: nothing.
std::string wrong_value(const Setter& setter) {
  const std::string name(setter.name);
  if (!setter.found) return fmt::format("there is no `{}` in a plan", name);
  if (!setter.missed) return "";
  return fmt::format("`{}` must be {} to {}", name, setter.missed->low, setter.missed->high);
}

class Reader {
 public:
  /// What is wrong with the line; empty: nothing.
  std::string take(std::string_view line) {
    if (line.empty() || line.front() == '#') return "";
    std::string_view rest = line;
    const std::string_view name = take_word(rest);
    if (!begun_) return begin(name, rest);
    if (name == "enabled") {
      const auto faults = faults_of(rest);
      if (faults) plan_.enabled = *faults;
      return faults ? "" : "`enabled` takes names of fault classes with commas between";
    }
    if (name == "node") return take_node(rest);
    Setter setter{name, 0, false, {}};
    const auto number = number_of(rest);
    if (!number) return fmt::format("`{}` takes a number", name);
    setter.value = *number;
    if (name == "nodes") {
      setter.found = true;
      const Range range{kNodesMin, kNodesMax};
      if (*number < range.low || *number > range.high) setter.missed = range;
      if (!setter.missed) plan_.nodes.resize(static_cast<std::size_t>(*number));
    } else {
      each_field_of_the_group(setter, plan_);
    }
    return wrong_value(setter);
  }

  bool begun() const { return begun_; }
  Plan& plan() { return plan_; }

 private:
  std::string begin(std::string_view name, std::string_view version) {
    begun_ = name == kFormat && version == std::to_string(kVersion);
    return begun_ ? "" : "a plan begins with `leasehold-plan 1`";
  }

  std::string take_node(std::string_view rest) {
    const auto number = number_of(take_word(rest));
    const std::string_view name = take_word(rest);
    const auto value = number_of(rest);
    if (!number || !value) return "a line of a node is `node NUMBER NAME VALUE`";
    if (*number < 1 || static_cast<std::size_t>(*number) > plan_.nodes.size()) {
      return fmt::format("there are {} nodes: `nodes NUMBER` stands before their lines",
                         plan_.nodes.size());
    }
    Setter setter{name, *value, false, {}};
    each_node_field(setter, plan_.nodes[static_cast<std::size_t>(*number) - 1]);
    return wrong_value(setter);
  }

  bool begun_ = false;
  Plan plan_;
};

std::string wrong_node(const NodePlan& node, const Plan& plan) {
  if (const Result<void> valid = node.timing.validate(); !valid) return valid.error().message;
  lease::Timing other = node.timing;
  other.max_clock_drift_ppm = node.other_drift_ppm;
  if (const Result<void> valid = other.validate(); !valid) return valid.error().message;
  if (node.apply_min > node.apply_max) return "`apply_min` is above `apply_max`";
  if (node.sync_max < plan.disk.sync_min) return "`sync_max` is below `disk.sync_min`";
  return "";
}

/// Values that contradict each other; empty: none do.
std::string contradiction(const Plan& plan) {
  using std::chrono::milliseconds;
  bool state = false;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const std::string wrong = wrong_node(plan.nodes[i], plan);
    if (!wrong.empty()) return fmt::format("node {}: {}", i + 1, wrong);
    state = state || (i < plan.founders && !plan.nodes[i].witness);
  }
  if (plan.founders < kNodesMin || plan.founders > plan.nodes.size()) {
    return "`founders` must be 3 to the number of nodes";
  }
  if (!state) return "one of the founders must be no witness";
  if (plan.link.delay_min > plan.link.delay_max) return "`link.delay_min` is above the maximum";
  if (plan.disk.sync_min > plan.disk.sync_max) return "`disk.sync_min` is above the maximum";
  if (plan.snapshots.work_min > plan.snapshots.work_max) {
    return "`snapshots.work_min` is above the maximum";
  }
  if (plan.workload.keys == 0) return "`workload.keys` must be 1 or more";
  if (plan.fault_interval < milliseconds(1)) return "`fault_interval` must be 1000000 or more";
  if (plan.disk.full_max < milliseconds(50)) return "`disk.full_max` must be 50000000 or more";
  const auto too_short = [&plan](FaultClass fault, Duration interval) {
    return plan.enabled.has(fault) && interval < milliseconds(1);
  };
  if (too_short(FaultClass::transfer, plan.transfer_interval)) {
    return "`transfer_interval` must be 1000000 or more";
  }
  if (too_short(FaultClass::membership, plan.member_change_interval)) {
    return "`member_change_interval` must be 1000000 or more";
  }
  if (too_short(FaultClass::cut_demand, plan.cut_demand_interval)) {
    return "`cut_demand_interval` must be 1000000 or more";
  }
  if (too_short(FaultClass::settings, plan.settings.change_interval)) {
    return "`settings.change_interval` must be 1000000 or more";
  }
  if (const Result<void> valid = plan.settings.first.timing.validate(); !valid) {
    return "settings: " + valid.error().message;
  }
  if (plan.sessions.clients > 0 && plan.sessions.idle_max < milliseconds(100)) {
    return "`sessions.idle_max` must be 100000000 or more";
  }
  const auto bad_lease = [](Duration ttl, Duration margin) {
    return ttl < milliseconds(50) || margin > ttl / 10;
  };
  if (plan.leases.clients > 0 && bad_lease(plan.leases.ttl, plan.leases.margin)) {
    return "`leases.ttl` must be 50000000 or more, and the margin at most a tenth of it";
  }
  if (plan.leases.clients > 0 && plan.leases.look_max < milliseconds(1)) {
    return "`leases.look_max` must be 1000000 or more";
  }
  if (plan.leases.clients > 0 && plan.leases.drift_ppm > 500'000) {
    return "`leases.drift_ppm` must be 500000 or less";
  }
  if (plan.key_locks.clients > 0 && bad_lease(plan.key_locks.ttl, plan.key_locks.margin)) {
    return "`key_locks.ttl` must be 50000000 or more, and the margin at most a tenth of it";
  }
  if (plan.driver.snapshot_window_bytes < plan.driver.snapshot_chunk_bytes) {
    return "`driver.snapshot_window_bytes` is below a chunk";
  }
  return "";
}

}  // namespace

std::string text_of(const Plan& plan) {
  std::string text = fmt::format("{} {}\n", kFormat, kVersion);
  text += fmt::format("enabled {}\n", names_of(plan.enabled));
  text += fmt::format("nodes {}\n", plan.nodes.size());
  Writer writer{text, ""};
  each_field_of_the_group(writer, plan);
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    writer.before = fmt::format("node {} ", i + 1);
    each_node_field(writer, plan.nodes[i]);
  }
  return text;
}

Result<Plan> plan_of(std::string_view text) {
  const auto wrong = [](std::string message) {
    return Error{ErrorCode::invalid_argument, std::move(message)};
  };
  Reader reader;
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::size_t end = text.find('\n');
    const std::string found = reader.take(text.substr(0, end));
    if (!found.empty()) return wrong(fmt::format("line {}: {}", line, found));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  if (!reader.begun()) return wrong("it is empty: a plan begins with `leasehold-plan 1`");
  const std::string found = contradiction(reader.plan());
  if (!found.empty()) return wrong(found);
  return std::move(reader.plan());
}

}  // namespace leasehold::sim
