#include <leasehold/bench/compare/run_compare.h>

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace leasehold::bench {
namespace {

std::string grouped(double number) {
  const std::string digits = fmt::format("{:.0f}", number);
  std::string out;
  for (std::size_t at = 0; at < digits.size(); ++at) {
    if (at > 0 && (digits.size() - at) % 3 == 0) out += ',';
    out += digits[at];
  }
  return out;
}

std::string line_of(const Ratio& ratio, const Plan& plan) {
  const std::string start = fmt::format("{:<27} {:<29} {:<5}", plan.cases[ratio.of_case].name,
                                        plan.targets[ratio.target].name, ratio.measure);
  if (!ratio.thrown_away.empty()) return fmt::format("{} thrown away\n", start);
  return fmt::format("{}{:>12} {:>12}  {:<22} {}\n", start, amount_text(ratio, ratio.ours),
                     amount_text(ratio, ratio.theirs), interval_text(ratio.interval),
                     verdict_of(ratio));
}

std::string curves_of(const Plan& plan, const Findings& findings) {
  std::string text;
  for (const Figure& figure : findings.figures) {
    const Case& one = plan.cases[figure.of_case];
    if (one.growth.empty()) continue;
    if (text.empty()) text = "\nGrowth\n";
    text += fmt::format("{:<45} {:<29}", one.name, plan.targets[figure.target].name);
    if (figure.standing == 0) {
      text += " thrown away\n";
      continue;
    }
    text +=
        fmt::format("{:>12}/s  p50 {:>9.1f} us  p99 {:>9.1f} us  {:>7.1f} us of CPU\n",
                    grouped(figure.rate.value), static_cast<double>(figure.quantile(0.5)) / 1000,
                    static_cast<double>(figure.quantile(0.99)) / 1000, figure.cpu_us.value);
  }
  return text;
}

}  // namespace

std::string amount_text(const Ratio& ratio, double amount) {
  if (ratio.measure == "rate") return grouped(amount) + "/s";
  return fmt::format("{:.1f} us", amount);
}

std::string interval_text(const Interval& interval) {
  return fmt::format("{:.2f} ({:.2f} to {:.2f})", interval.value, interval.low, interval.high);
}

std::string verdict_of(const Ratio& ratio) {
  if (!ratio.thrown_away.empty()) return "thrown away";
  const bool below = ratio.interval.high < 1;
  const bool above = ratio.interval.low > 1;
  if (!below && !above) return "no sure difference";
  return below == ratio.less_is_better ? "Leasehold better" : "Leasehold worse";
}

std::vector<std::string> method_of(const CompareOptions& options,
                                   const Circumstances& circumstances, const Plan& plan) {
  std::vector<std::string> all;
  if (options.smoke)
    all.push_back("A smoke run: it shows that everything works, and no figure means anything.");
  all.push_back(fmt::format("{}; {}, {} cores; {}, {}; load {:.1f} at the start.",
                            circumstances.started, circumstances.processor, circumstances.cores,
                            circumstances.distribution, circumstances.kernel,
                            circumstances.load_at_start));
  std::string versions;
  for (const std::string& version : circumstances.versions) {
    versions += (versions.empty() ? "" : ", ") + version;
  }
  all.push_back(versions + ".");
  all.push_back(fmt::format(
      "Everything runs on this one machine, over loopback: the client shares the cores with "
      "the servers, and the "
      "nodes of a group share one disk ({}). Machines of their own have other ratios.",
      circumstances.file_system));
  if (circumstances.in_memory) {
    all.push_back(
        "That file system is in memory: no write reached a disk. Name a folder on a disk by "
        "--dir.");
  }
  all.push_back(fmt::format(
      "{} sweeps in {}{}; a block measures {:.2f} s, after {:.2f} s that do not count. Each "
      "sweep goes through the "
      "systems in the other direction, A B B A, so that a drift of the machine meets all alike.",
      options.sweeps, time_text(circumstances.seconds),
      circumstances.ended_early ? " (ended early)" : "", options.block_s, options.warm_up_s));
  all.push_back(fmt::format(
      "{} keys, drawn uniformly, values of {} bytes. The loop is closed: the next operation "
      "begins when one is "
      "answered, so a latency hides what a queue would add.",
      options.keys, options.value_bytes));
  all.push_back(
      "A ratio is Leasehold's over the other's, with the 95 % interval of a bootstrap that "
      "draws whole sweeps.");
  all.push_back(
      "CPU is the processor time of all processes of a system, in us for each operation. "
      "Reads and writes go to the "
      "leader, serializable reads to all members. etcd is spoken to by gRPC, the others by "
      "the protocol of Redis, by "
      "the same client.");
  for (const Target& target : plan.targets) {
    all.push_back(fmt::format("{}: {}.", target.name, target.promise));
  }
  if (circumstances.stolen > 0.005) {
    all.push_back(fmt::format("The hypervisor took {:.1f} % of the processor time.",
                              100 * circumstances.stolen));
  }
  for (const std::string& left_out : circumstances.left_out) all.push_back(left_out + ".");
  return all;
}

std::vector<std::string> thrown_away_of(const Plan& plan, const Findings& findings) {
  std::vector<std::string> all;
  for (const Figure& figure : findings.figures) {
    for (const auto& [reason, count] : figure.reasons) {
      all.push_back(fmt::format("{}, {}: {} of {} blocks ({})", plan.cases[figure.of_case].name,
                                plan.targets[figure.target].name, count, figure.blocks, reason));
    }
  }
  for (const Ratio& ratio : findings.ratios) {
    if (ratio.thrown_away.empty()) continue;
    all.push_back(fmt::format("{}, {} beside {}: the comparison, because {}",
                              plan.cases[ratio.of_case].name, ratio.measure,
                              plan.targets[ratio.target].name, ratio.thrown_away));
  }
  return all;
}

std::string table_of_comparison(const CompareOptions& options, const Circumstances& circumstances,
                                const Plan& plan, const Findings& findings) {
  std::string table = fmt::format("{:<27} {:<29} {:<5}{:>12} {:>12}  {:<22}\n", "", "beside", "",
                                  "Leasehold", "the other", "ratio (95 %)");
  for (const Ratio& ratio : findings.ratios) table += line_of(ratio, plan);
  if (findings.ratios.empty()) table += "nothing to compare with: no peer is installed\n";
  table += curves_of(plan, findings) + "\n";
  for (const std::string& sentence : thrown_away_of(plan, findings)) {
    table += "THROWN AWAY: " + sentence + "\n";
  }
  for (const std::string& sentence : method_of(options, circumstances, plan)) {
    table += "- " + sentence + "\n";
  }
  return table;
}

}  // namespace leasehold::bench
