#include <leasehold/bench/compare/measure.h>
#include <leasehold/bench/load/engine.h>
#include <leasehold/bench/load/links.h>
#include <leasehold/bench/load/outcome.h>
#include <leasehold/bench/load/write_keys.h>
#include <leasehold/bench/workload.h>

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <set>

namespace leasehold::bench {
namespace {

std::uint64_t nanoseconds(double seconds) {
  return static_cast<std::uint64_t>(seconds * 1e9);
}

std::string errors_text(const Measured& total) {
  std::string text;
  for (const auto& [kind, count] : total.errors) text += (text.empty() ? "" : ", ") + kind;
  return "errors: " + text;
}

}  // namespace

std::vector<std::size_t> order_of(const Case& one, std::size_t sweep) {
  std::vector<std::size_t> order = one.targets;
  if (sweep % 2 == 1) std::reverse(order.begin(), order.end());
  return order;
}

Result<LoadOptions> load_of(const CompareOptions& options, const Case& one, const Target& target,
                            const std::vector<std::string>& servers) {
  LoadOptions load;
  load.servers = servers;
  load.etcd = target.system == System::etcd;
  if (auto taken = take_workload(one.writes ? "set" : "get", load); !taken) return taken.error();
  if (!target.read_mode.empty()) {
    if (auto taken = take_read_mode(target.read_mode, load); !taken) return taken.error();
  }
  load.keys = options.keys;
  load.value_bytes = one.value_bytes;
  load.connections = one.connections;
  load.in_flight = one.in_flight;
  load.duration_s = options.block_s;
  load.warm_up_s = options.warm_up_s;
  load.load = false;
  load.seed = options.seed;
  load.quiet = true;
  if (auto settled = settle(load); !settled) return settled.error();
  return load;
}

Result<bool> Measurer::run() {
  std::set<std::uint64_t> sizes;
  for (const Case& one : plan_.cases) sizes.insert(one.value_bytes);
  // The usual cases are the ones that must not be lost when the user ends it in a curve.
  std::vector<std::uint64_t> order = {options_.value_bytes};
  for (const std::uint64_t size : sizes) {
    if (size != options_.value_bytes) order.push_back(size);
  }
  began_ns_ = monotonic_ns();
  sweeps_ = options_.sweeps;
  for (const std::uint64_t size : order) {
    const bool usual = size == options_.value_bytes;
    if (auto written = write_all_keys(size); !written) {
      if (written.error().code != ErrorCode::stopped) return written.error();
      if (usual) sweeps_ = 0;
      return false;
    }
    for (std::size_t sweep = 0; sweep < options_.sweeps; ++sweep) {
      const auto whole = run_sweep(sweep, size);
      if (!whole) return whole.error();
      if (whole.value()) continue;
      // A sweep that is not whole would give some targets more blocks than others.
      blocks_.erase(std::remove_if(blocks_.begin(), blocks_.end(),
                                   [&](const MeasuredBlock& block) {
                                     return block.sweep == sweep &&
                                            plan_.cases[block.of_case].value_bytes == size;
                                   }),
                    blocks_.end());
      if (usual) sweeps_ = sweep;
      return false;
    }
  }
  return true;
}

Result<void> Measurer::write_all_keys(std::uint64_t value_bytes) {
  for (auto& [system, running] : systems_) {
    // What syncs each write is read by nobody.
    if (system == System::redis_durable) continue;
    Case writes;
    writes.writes = true;
    writes.value_bytes = value_bytes;
    Target target;
    target.system = system;
    const auto load = load_of(options_, writes, target, running.addresses());
    if (!load) return load.error();
    auto links = Links::open(load.value());
    if (!links) return links.error();
    Engine::Hooks hooks;
    hooks.ended = ended_;
    Engine engine(*links.value(), load.value(), hooks);
    const auto told = [&, name = description_of(system)](std::uint64_t done) {
      if (options_.quiet) return;
      news_ << fmt::format("writing the keys of {}: {} of {}", name, done, options_.keys)
            << std::endl;
    };
    if (auto written = write_keys(engine, hooks, load.value(), options_.keys, told); !written)
      return written;
  }
  return {};
}

Result<bool> Measurer::run_sweep(std::size_t sweep, std::uint64_t value_bytes) {
  for (std::size_t of_case = 0; of_case < plan_.cases.size(); ++of_case) {
    const Case& one = plan_.cases[of_case];
    if (one.value_bytes != value_bytes) continue;
    const std::size_t first_block = blocks_.size();
    for (const std::size_t target : order_of(one, sweep)) {
      if (ended_()) return false;
      auto block = run_block(of_case, target, sweep);
      if (!block && block.error().code == ErrorCode::stopped) return false;
      if (!block) return block.error();
      blocks_.push_back(std::move(block).value());
      ++blocks_done_;
    }
    tell(sweep, of_case, first_block);
  }
  return true;
}

Result<MeasuredBlock> Measurer::run_block(std::size_t of_case, std::size_t target,
                                          std::size_t sweep) {
  const Case& one = plan_.cases[of_case];
  MeasuredBlock block;
  block.of_case = of_case;
  block.target = target;
  block.sweep = sweep;
  RunningSystem& system = systems_.at(plan_.targets[target].system);
  const auto load = load_of(options_, one, plan_.targets[target], system.addresses());
  if (!load) return load.error();
  // A leader that is just changing is waited for; one that changes in the block costs the block.
  if (auto ready = system.wait_ready(ended_); !ready) return ready.error();
  auto links = Links::open(load.value());
  if (!links) return links.error();
  Engine::Hooks hooks;
  hooks.ended = ended_;
  Engine engine(*links.value(), load.value(), hooks);
  // Each block draws other keys, and the targets of a sweep the same ones.
  OperationSource source(load.value().mix, Distribution::uniform, options_.keys,
                         options_.seed + sweep);
  Phase phase;
  phase.next = [&source] { return std::optional(source.next()); };
  phase.in_flight = load.value().in_flight;
  phase.duration_ns = nanoseconds(options_.warm_up_s);
  if (options_.warm_up_s > 0) {
    if (const auto warm = engine.run(phase); !warm) return warm.error();
  }
  const auto before = system.state();
  const std::uint64_t cpu_before = system.cpu_ns();
  phase.duration_ns = nanoseconds(options_.block_s);
  const auto result = engine.run(phase);
  if (!result) return result.error();
  block.cpu_ns = system.cpu_ns() - cpu_before;
  const auto after = system.state();
  if (result.value().ended_early) return Error{ErrorCode::stopped, "ended by the user"};
  block.latency = slots_of(result.value().total.all());
  block.operations = result.value().total.operations();
  block.elapsed_ns = result.value().elapsed_ns;
  if (block.elapsed_ns > 0) {
    block.client_busy =
        static_cast<double>(result.value().cpu_ns) / static_cast<double>(block.elapsed_ns);
  }
  if (!before || !after) {
    block.thrown_away = "a server did not answer, or had no leader";
  } else if (!result.value().total.errors.empty()) {
    block.thrown_away = errors_text(result.value().total);
  } else {
    block.thrown_away = reason_against(block, before.value(), after.value());
  }
  return block;
}

std::string Measurer::reason_against(const MeasuredBlock& block, const SystemState& before,
                                     const SystemState& after) const {
  if (block.operations == 0) return "nothing was answered";
  if (before.leader != after.leader) return "the leader changed";
  if (block.client_busy >= kBusyMax) return "the client was the bottleneck";
  const bool by_lease = plan_.targets[block.target].read_mode == "lease";
  if (by_lease && after.lease_reads - before.lease_reads < block.operations) {
    return "not every read was by the lease";
  }
  return "";
}

/// One line for each case of a sweep.
void Measurer::tell(std::size_t sweep, std::size_t of_case, std::size_t first_block) {
  if (options_.quiet) return;
  const Case& one = plan_.cases[of_case];
  std::string line = fmt::format("sweep {:>2} of {}  {}:", sweep + 1, options_.sweeps, one.name);
  for (const std::size_t target : one.targets) {
    for (std::size_t i = first_block; i < blocks_.size(); ++i) {
      const MeasuredBlock& block = blocks_[i];
      if (block.target != target) continue;
      line += "  " + plan_.targets[target].id;
      if (!block.thrown_away.empty()) {
        line += fmt::format(" (thrown away: {})", block.thrown_away);
      } else if (one.latency) {
        line +=
            fmt::format(" {:.0f} us", static_cast<double>(quantile_of(block.latency, 0.5)) / 1000);
      } else {
        line += fmt::format(" {:.0f}/s", static_cast<double>(block.operations) * 1e9 /
                                             static_cast<double>(block.elapsed_ns));
      }
    }
  }
  const double so_far = static_cast<double>(monotonic_ns() - began_ns_) / 1e9;
  const std::size_t all = plan_.blocks_of_sweep() * options_.sweeps;
  const double left =
      so_far / static_cast<double>(blocks_done_) * static_cast<double>(all - blocks_done_);
  news_ << line << fmt::format("  [{} % done, {} left]", blocks_done_ * 100 / all, time_text(left))
        << std::endl;
}

}  // namespace leasehold::bench
