#include <leasehold/bench/compare/findings.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

namespace leasehold::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kComparisonFormat = 1;

/// The blocks of one target in one case, by sweep; null: none, or thrown away.
using BySweep = std::vector<const MeasuredBlock*>;

BySweep standing_blocks(const std::vector<MeasuredBlock>& blocks, std::size_t of_case,
                        std::size_t target, std::size_t sweeps) {
  BySweep found(sweeps, nullptr);
  for (const MeasuredBlock& block : blocks) {
    const bool this_one = block.of_case == of_case && block.target == target;
    if (this_one && block.sweep < sweeps && block.thrown_away.empty()) found[block.sweep] = &block;
  }
  return found;
}

std::vector<Slots> latencies_of(const BySweep& blocks) {
  std::vector<Slots> all;
  for (const MeasuredBlock* block : blocks) all.push_back(block->latency);
  return all;
}

std::vector<Share> rates_of(const BySweep& blocks) {
  std::vector<Share> all;
  for (const MeasuredBlock* block : blocks) {
    all.push_back(
        {static_cast<double>(block->operations), static_cast<double>(block->elapsed_ns) / 1e9});
  }
  return all;
}

std::vector<Share> costs_of(const BySweep& blocks) {
  std::vector<Share> all;
  for (const MeasuredBlock* block : blocks) {
    all.push_back(
        {static_cast<double>(block->cpu_ns) / 1000, static_cast<double>(block->operations)});
  }
  return all;
}

Figure figure_from(const std::vector<MeasuredBlock>& blocks, std::size_t of_case,
                   std::size_t target, std::size_t sweeps) {
  Figure figure;
  figure.of_case = of_case;
  figure.target = target;
  for (const MeasuredBlock& block : blocks) {
    if (block.of_case != of_case || block.target != target) continue;
    ++figure.blocks;
    if (!block.thrown_away.empty()) ++figure.reasons[block.thrown_away];
  }
  BySweep standing = standing_blocks(blocks, of_case, target, sweeps);
  standing.erase(std::remove(standing.begin(), standing.end(), nullptr), standing.end());
  figure.standing = standing.size();
  if (standing.empty()) return figure;
  figure.latency = merged(latencies_of(standing));
  figure.rate = share_of(rates_of(standing));
  figure.cpu_us = share_of(costs_of(standing));
  return figure;
}

/// Every measure of Leasehold over that of `target`.
class Comparison {
 public:
  Comparison(const Plan& plan, const std::vector<MeasuredBlock>& blocks, std::size_t sweeps,
             std::size_t of_case, std::size_t target)
      : plan_(plan), of_case_(of_case), target_(target), sweeps_(sweeps) {
    const Case& one = plan.cases[of_case];
    const BySweep ours = standing_blocks(blocks, of_case, one.targets.front(), sweeps);
    const BySweep theirs = standing_blocks(blocks, of_case, target, sweeps);
    for (std::size_t sweep = 0; sweep < sweeps; ++sweep) {
      if (ours[sweep] == nullptr || theirs[sweep] == nullptr) continue;
      ours_.push_back(ours[sweep]);
      theirs_.push_back(theirs[sweep]);
    }
  }

  std::vector<Ratio> ratios() const {
    std::vector<Ratio> all;
    if (plan_.cases[of_case_].latency) {
      all.push_back(quantile("p50", 0.5));
      all.push_back(quantile("p99", 0.99));
    } else {
      Ratio rate = begin("rate");
      rate.less_is_better = false;
      if (rate.thrown_away.empty()) fill(rate, rates_of(ours_), rates_of(theirs_));
      all.push_back(rate);
    }
    Ratio cost = begin("CPU");
    if (cost.thrown_away.empty()) fill(cost, costs_of(ours_), costs_of(theirs_));
    all.push_back(cost);
    return all;
  }

 private:
  Ratio begin(const char* measure) const {
    Ratio ratio;
    ratio.of_case = of_case_;
    ratio.target = target_;
    ratio.measure = measure;
    ratio.pairs = ours_.size();
    const auto least = std::max<std::size_t>(
        2, static_cast<std::size_t>(std::ceil(kStandingMin * static_cast<double>(sweeps_))));
    if (ours_.size() < least) {
      ratio.thrown_away = fmt::format("only {} of {} pairs of blocks stand", ours_.size(), sweeps_);
    }
    return ratio;
  }

  Ratio quantile(const char* measure, double q) const {
    Ratio ratio = begin(measure);
    if (!ratio.thrown_away.empty()) return ratio;
    const std::vector<Slots> ours = latencies_of(ours_);
    const std::vector<Slots> theirs = latencies_of(theirs_);
    ratio.interval = ratio_of_quantiles(ours, theirs, q);
    ratio.ours = static_cast<double>(quantile_of(merged(ours), q)) / 1000;
    ratio.theirs = static_cast<double>(quantile_of(merged(theirs), q)) / 1000;
    return ratio;
  }

  static void fill(Ratio& ratio, const std::vector<Share>& ours, const std::vector<Share>& theirs) {
    ratio.interval = ratio_of_shares(ours, theirs);
    ratio.ours = share_of(ours).value;
    ratio.theirs = share_of(theirs).value;
  }

  const Plan& plan_;
  const std::size_t of_case_;
  const std::size_t target_;
  const std::size_t sweeps_;
  BySweep ours_;
  BySweep theirs_;
};

Json interval_json(const Interval& interval) {
  return {{"value", interval.value}, {"low", interval.low}, {"high", interval.high}};
}

Json plan_json(const Plan& plan) {
  Json targets = Json::array();
  for (const Target& target : plan.targets) {
    targets.push_back({{"id", target.id},
                       {"name", target.name},
                       {"promise", target.promise},
                       {"read_mode", target.read_mode}});
  }
  Json cases = Json::array();
  for (const Case& one : plan.cases) {
    Json at = Json::array();
    for (const std::size_t target : one.targets) at.push_back(plan.targets[target].id);
    cases.push_back({{"id", one.id},
                     {"name", one.name},
                     {"writes", one.writes},
                     {"connections", one.connections},
                     {"in_flight", one.in_flight},
                     {"value_bytes", one.value_bytes},
                     {"curve", one.growth},
                     {"x", one.x},
                     {"targets", std::move(at)}});
  }
  return {{"targets", std::move(targets)}, {"cases", std::move(cases)}};
}

Json block_json(const Plan& plan, const MeasuredBlock& block) {
  Json slots = Json::array();
  for (const auto& [value, count] : block.latency) slots.push_back({value, count});
  return {{"case", plan.cases[block.of_case].id},
          {"target", plan.targets[block.target].id},
          {"sweep", block.sweep},
          {"operations", block.operations},
          {"elapsed_ns", block.elapsed_ns},
          {"server_cpu_ns", block.cpu_ns},
          {"client_busy", block.client_busy},
          {"thrown_away", block.thrown_away},
          {"latency_ns", std::move(slots)}};
}

Json findings_json(const Plan& plan, const Findings& findings) {
  Json figures = Json::array();
  for (const Figure& figure : findings.figures) {
    figures.push_back({{"case", plan.cases[figure.of_case].id},
                       {"target", plan.targets[figure.target].id},
                       {"blocks", figure.blocks},
                       {"standing", figure.standing},
                       {"p50_ns", figure.quantile(0.5)},
                       {"p99_ns", figure.quantile(0.99)},
                       {"rate", interval_json(figure.rate)},
                       {"server_cpu_us", interval_json(figure.cpu_us)},
                       {"thrown_away", figure.reasons}});
  }
  Json ratios = Json::array();
  for (const Ratio& ratio : findings.ratios) {
    ratios.push_back({{"case", plan.cases[ratio.of_case].id},
                      {"target", plan.targets[ratio.target].id},
                      {"measure", ratio.measure},
                      {"less_is_better", ratio.less_is_better},
                      {"ours", ratio.ours},
                      {"theirs", ratio.theirs},
                      {"ratio", interval_json(ratio.interval)},
                      {"pairs", ratio.pairs},
                      {"thrown_away", ratio.thrown_away}});
  }
  return {{"figures", std::move(figures)}, {"ratios", std::move(ratios)}};
}

}  // namespace

const Figure* Findings::figure_of(std::size_t of_case, std::size_t target) const {
  for (const Figure& figure : figures) {
    if (figure.of_case == of_case && figure.target == target) return &figure;
  }
  return nullptr;
}

bool Findings::all_stand() const {
  const bool figures_stand = std::all_of(figures.begin(), figures.end(), [](const Figure& figure) {
    return figure.standing > 0 && static_cast<double>(figure.standing) >=
                                      kStandingMin * static_cast<double>(figure.blocks);
  });
  return figures_stand && std::all_of(ratios.begin(), ratios.end(),
                                      [](const Ratio& ratio) { return ratio.thrown_away.empty(); });
}

Findings findings_of(const Plan& plan, const std::vector<MeasuredBlock>& blocks,
                     std::size_t sweeps) {
  Findings findings;
  for (std::size_t i = 0; i < plan.cases.size(); ++i) {
    for (const std::size_t target : plan.cases[i].targets) {
      findings.figures.push_back(figure_from(blocks, i, target, sweeps));
      // A curve shows figures, not ratios.
      if (target == plan.cases[i].targets.front() || !plan.cases[i].growth.empty()) continue;
      for (Ratio& ratio : Comparison(plan, blocks, sweeps, i, target).ratios()) {
        findings.ratios.push_back(std::move(ratio));
      }
    }
  }
  return findings;
}

std::string json_of_comparison(const CompareOptions& options, const Circumstances& circumstances,
                               const Plan& plan, const std::vector<MeasuredBlock>& blocks,
                               const Findings& findings) {
  Json each = Json::array();
  for (const MeasuredBlock& block : blocks) each.push_back(block_json(plan, block));
  const Json json = {{"format", kComparisonFormat},
                     {"started", circumstances.started},
                     {"seconds", circumstances.seconds},
                     {"ended_early", circumstances.ended_early},
                     {"smoke", options.smoke},
                     {"machine",
                      {{"processor", circumstances.processor},
                       {"cores", circumstances.cores},
                       {"kernel", circumstances.kernel},
                       {"distribution", circumstances.distribution},
                       {"file_system", circumstances.file_system},
                       {"load_at_start", circumstances.load_at_start},
                       {"stolen_share", circumstances.stolen}}},
                     {"versions", circumstances.versions},
                     {"left_out", circumstances.left_out},
                     {"options",
                      {{"sweeps", options.sweeps},
                       {"block_s", options.block_s},
                       {"warm_up_s", options.warm_up_s},
                       {"keys", options.keys},
                       {"value_bytes", options.value_bytes},
                       {"growth", options.growth},
                       {"seed", options.seed}}},
                     {"plan", plan_json(plan)},
                     {"findings", findings_json(plan, findings)},
                     {"blocks", std::move(each)}};
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

}  // namespace leasehold::bench
