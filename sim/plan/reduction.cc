#include <leasehold/sim/plan/reduction.h>
#include <leasehold/sim/world/plan.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

namespace leasehold::sim {
namespace {

constexpr std::size_t kRangesMax = 10'000;

/// What `--without` takes in addition to the names of fault classes.
constexpr std::array<std::pair<const char*, bool Reduction::*>, 4> kKinds = {{
    {"sessions", &Reduction::no_sessions},
    {"leases", &Reduction::no_leases},
    {"key_locks", &Reduction::no_key_locks},
    {"watchers", &Reduction::no_watchers},
}};

void leave_out(FaultClass fault, Plan& plan) {
  plan.enabled.remove(fault);
  switch (fault) {
    case FaultClass::crash:
      plan.crash_at_send_ppm = 0;
      plan.crash_at_persist_ppm = 0;
      plan.snapshots.crash_ppm = 0;
      plan.young_leader_percent = 0;
      plan.duel = false;
      return;
    case FaultClass::pause: plan.wake_percent = 0; return;
    case FaultClass::partition:
      plan.hunt_percent = 0;
      plan.young_leader_percent = 0;
      plan.duel = false;
      return;
    case FaultClass::loss: plan.link.loss_ppm = 0; return;
    case FaultClass::duplication: plan.link.duplicate_ppm = 0; return;
    case FaultClass::reordering:
      plan.link.keeps_order = true;
      plan.link.spike_ppm = 0;
      return;
    case FaultClass::replay: plan.link.echo_percent = 0; return;
    case FaultClass::disk_stall:
      plan.disk.stall_ppm = 0;
      for (NodePlan& node : plan.nodes) node.sync_max = plan.disk.sync_max;
      return;
    case FaultClass::unsynced_loss:
      plan.disk.loses_unsynced = false;
      plan.crash_at_persist_ppm = 0;
      return;
    case FaultClass::disk_error:
      plan.disk.error_ppm = 0;
      plan.snapshots.failure_ppm = 0;
      return;
    case FaultClass::extreme_drift:
      plan.drift_extreme = false;
      plan.drift_against_leader = false;
      plan.drift_ppm_max = 0;
      return;
    case FaultClass::slow_apply:
      for (NodePlan& node : plan.nodes) node.apply_max = node.apply_min;
      return;
    case FaultClass::late_handling:
      for (NodePlan& node : plan.nodes) node.late_ppm = 0;
      return;
    case FaultClass::reader_pause: plan.workload.reader_pause_ppm = 0; return;
    case FaultClass::suspend:
    case FaultClass::one_way_cut:
    case FaultClass::drift_change:
    case FaultClass::straggler:
    case FaultClass::full_disk:
    case FaultClass::transfer:
    case FaultClass::membership:
    case FaultClass::cut_demand:
    case FaultClass::settings: return;
  }
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = text.find(',', begin);
    words.push_back(text.substr(begin, end - begin));
    if (end == std::string::npos) return words;
    begin = end + 1;
  }
}

std::optional<std::uint64_t> number_of(const std::string& text) {
  if (text.empty() || text.size() > 9) return std::nullopt;
  std::uint64_t number = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return number;
}

bool take_without(const std::string& value, Reduction& reduction) {
  for (const std::string& word : split(value)) {
    bool known = false;
    for (const auto& [name, member] : kKinds) {
      if (word != name) continue;
      reduction.*member = true;
      known = true;
    }
    if (const auto fault = fault_class_of(word)) {
      reduction.without.add(*fault);
      known = true;
    }
    if (!known) return false;
  }
  return true;
}

/// "none", or "3,7-9", ascending.
bool take_only(const std::string& value, Reduction& reduction) {
  FaultNumbers numbers;
  if (value != "none") {
    const std::vector<std::string> words = split(value);
    if (words.size() > kRangesMax) return false;
    for (const std::string& word : words) {
      const std::size_t dash = word.find('-');
      const auto first = number_of(word.substr(0, dash));
      const auto last = dash == std::string::npos ? first : number_of(word.substr(dash + 1));
      if (!first || !last || *first > *last) return false;
      if (!numbers.empty() && numbers.back().second >= *first) return false;
      numbers.emplace_back(*first, *last);
    }
  }
  reduction.only = std::move(numbers);
  return true;
}

}  // namespace

void reduce(const Reduction& reduction, Plan& plan) {
  for (std::size_t i = 0; i < kFaultClasses; ++i) {
    const auto fault = static_cast<FaultClass>(i);
    if (reduction.without.has(fault)) leave_out(fault, plan);
  }
  if (reduction.no_sessions) plan.sessions.clients = 0;
  if (reduction.no_leases) plan.leases.clients = 0;
  if (reduction.no_key_locks) plan.key_locks.clients = 0;
  if (reduction.no_watchers) plan.workload.watchers = 0;
  plan.leases.drift_ppm = std::min(plan.leases.drift_ppm, plan.drift_ppm_max);
  if (reduction.clients_max == 0) return;
  plan.workload.clients = std::min(plan.workload.clients, reduction.clients_max);
}

std::string options_of(const Reduction& reduction) {
  std::string text;
  std::string without;
  const auto add = [&without](const char* name) {
    without += (without.empty() ? "" : ",") + std::string(name);
  };
  for (std::size_t i = 0; i < kFaultClasses; ++i) {
    const auto fault = static_cast<FaultClass>(i);
    if (reduction.without.has(fault)) add(fault_class_name(fault));
  }
  for (const auto& [name, member] : kKinds) {
    if (reduction.*member) add(name);
  }
  if (!without.empty()) text += " --without " + without;
  if (reduction.clients_max > 0) text += fmt::format(" --clients {}", reduction.clients_max);
  if (reduction.variant > 0) text += fmt::format(" --variant {}", reduction.variant);
  if (!reduction.only) return text;
  std::string numbers;
  for (const auto& [first, last] : *reduction.only) {
    numbers += fmt::format("{}{}", numbers.empty() ? "" : ",", first);
    if (last > first) numbers += fmt::format("-{}", last);
  }
  return fmt::format("{} --only {}", text, numbers.empty() ? "none" : numbers);
}

bool take_reduction(const std::string& name, const std::string& value, Reduction& reduction) {
  if (name == "--without") return take_without(value, reduction);
  if (name == "--only") return take_only(value, reduction);
  const auto number = number_of(value);
  if (!number) return false;
  if (name == "--clients") {
    reduction.clients_max = *number;
    return *number > 0;
  }
  if (name != "--variant") return false;
  reduction.variant = *number;
  return true;
}

}  // namespace leasehold::sim
