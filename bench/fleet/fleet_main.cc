// A hundred hosts with a hundred thousand groups, on virtual time: what they cost at rest, and how
// soon all groups have a lease again after hosts are lost. Prints one JSON object.
#include <leasehold/bench/fleet/fleet.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

namespace {

using leasehold::bench::Duration;
using leasehold::bench::Fleet;
using leasehold::bench::Plan;
using leasehold::bench::Sample;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Json = nlohmann::json;

constexpr Duration kEvery = milliseconds(50);
/// Until all groups have a lease.
constexpr Duration kStartMax = seconds(60);
/// At rest, before anything happens: what binds and settles is over.
constexpr Duration kSettle = seconds(5);
constexpr Duration kCalm = seconds(2);

double in_seconds(Duration time) {
  return std::chrono::duration<double>(time).count();
}

Json of(const Sample& sample, Duration since) {
  return {{"s", in_seconds(sample.at - since)},  {"leased", sample.leased},
          {"messages", sample.traffic.messages}, {"frames", sample.traffic.frames},
          {"bytes", sample.traffic.bytes},       {"syncs", sample.traffic.syncs},
          {"elected", sample.traffic.elected}};
}

/// Runs until all that can have a lease have one, and says how long that took; -1: not in `most`.
double until_leased(Fleet& fleet, Duration most, std::vector<Sample>& samples) {
  const Duration begun = fleet.now();
  while (fleet.now() < begun + most) {
    fleet.run(kEvery, kEvery, samples);
    if (samples.back().leased == fleet.groups()) return in_seconds(fleet.now() - begun);
  }
  return -1;
}

/// Per second, of the last samples.
Json rates(const std::vector<Sample>& samples, std::size_t last) {
  leasehold::bench::Traffic sum;
  for (std::size_t i = samples.size() - last; i < samples.size(); ++i) {
    sum.messages += samples[i].traffic.messages;
    sum.frames += samples[i].traffic.frames;
    sum.bytes += samples[i].traffic.bytes;
    sum.syncs += samples[i].traffic.syncs;
  }
  const double time = in_seconds(kEvery) * static_cast<double>(last);
  const auto per_second = [time](std::uint64_t count) { return static_cast<double>(count) / time; };
  return {{"messages", per_second(sum.messages)},
          {"frames", per_second(sum.frames)},
          {"bytes", per_second(sum.bytes)},
          {"syncs", per_second(sum.syncs)}};
}

/// What happens to the hosts. Returns how many groups were led by those that are lost.
std::size_t strike(Fleet& fleet, const std::string& event) {
  std::size_t led = 0;
  const auto lose = [&](std::size_t host, bool known) {
    led += fleet.led_by(host);
    fleet.kill(host, known);
  };
  if (event == "host") lose(0, false);
  if (event == "death") lose(0, true);
  if (event == "zone") {
    for (std::size_t host = 0; host < fleet.hosts(); ++host) {
      if (fleet.zone_of(host) == 0) lose(host, false);
    }
  }
  if (event == "slow") {
    led = fleet.led_by(0);
    fleet.slow_down(0, 50);
  }
  return led;
}

/// One host after the other, each as soon as all groups have leases again. Only some of them: the
/// others would do the same.
Json roll(Fleet& fleet, std::size_t hosts, std::vector<Sample>& samples) {
  Json each = Json::array();
  for (std::size_t host = 0; host < hosts; ++host) {
    const std::size_t led = fleet.led_by(host);
    fleet.kill(host, true);
    fleet.run(seconds(1), kEvery, samples);
    fleet.start(host);
    each.push_back({{"led", led}, {"leased_again_s", until_leased(fleet, kStartMax, samples)}});
  }
  return each;
}

}  // namespace

int main(int argc, char** argv) {
  Plan plan;
  std::string event = "host";
  std::string kind = "shared";
  std::int64_t sync_us = 1000;
  std::size_t rolled = 10;
  CLI::App app{"Hosts with many groups on virtual time: real cores, drawn placements."};
  app.add_option("--hosts", plan.hosts, "how many")->check(CLI::Range(3, 1000));
  app.add_option("--groups", plan.groups, "of three replicas each")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--zones", plan.zones, "a group has a replica in each of three")
      ->check(CLI::Range(3, 100));
  app.add_option("--beats", kind, "of processes, or of each group")
      ->check(CLI::IsMember({"shared", "own"}));
  app.add_option("--event", event, "what happens once all groups are at rest")
      ->check(CLI::IsMember({"none", "host", "death", "zone", "slow", "rolling"}));
  app.add_option("--rolled", rolled, "hosts that `rolling` restarts")->check(CLI::Range(1, 1000));
  app.add_option("--sync-us", sync_us, "what a disk takes for all that waits for it")
      ->check(CLI::Range(0, 1'000'000));
  app.add_option("--seed", plan.seed, "of the placements and the timeouts");
  CLI11_PARSE(app, argc, argv);
  plan.shared = kind == "shared";
  plan.sync = std::chrono::microseconds(sync_us);
  if (plan.zones > plan.hosts || (event == "rolling" && rolled > plan.hosts)) {
    std::cerr << "fleet: more zones, or more hosts to restart, than hosts\n";
    return 2;
  }
  Fleet fleet(plan);
  for (std::size_t host = 0; host < plan.hosts; ++host) fleet.start(host);
  std::vector<Sample> samples;
  Json out = {{"hosts", plan.hosts}, {"groups", plan.groups}, {"beats", kind}, {"event", event}};
  out["start_s"] = until_leased(fleet, kStartMax, samples);
  const std::size_t started = samples.size();
  fleet.run(kSettle, kEvery, samples);
  fleet.run(kCalm, kEvery, samples);
  out["at_rest"] = rates(samples, static_cast<std::size_t>(kCalm / kEvery));
  const std::size_t calm = samples.size();
  const Duration struck = fleet.now();
  if (event == "rolling") {
    out["restarts"] = roll(fleet, rolled, samples);
  } else if (event != "none") {
    out["led_there"] = strike(fleet, event);
    // A lease lasts beyond the loss of its holder's followers, and not beyond that of its holder.
    fleet.run(milliseconds(50), kEvery, samples);
    out["leased_again_s"] = until_leased(fleet, kStartMax, samples);
    fleet.run(seconds(2), kEvery, samples);
  }
  Json course = Json::array();
  for (std::size_t i = 0; i < started; ++i) course.push_back(of(samples[i], Duration(0)));
  out["start"] = std::move(course);
  course = Json::array();
  for (std::size_t i = calm; i < samples.size(); ++i) course.push_back(of(samples[i], struck));
  out["after"] = std::move(course);
  std::cout << out.dump() << "\n";
  return 0;
}
