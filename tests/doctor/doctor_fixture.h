// A machine, a configuration and a group in which nothing is wrong; each test spoils one thing.
#pragma once

#include <leasehold/doctor/facts.h>
#include <leasehold/doctor/finding.h>
#include <leasehold/doctor/judge.h>
#include <leasehold/server/settings.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>

namespace leasehold::doctor {

/// Samples of a clock that gains `ppm`, one in 100 ms, each with this round trip.
inline std::vector<ClockSample> samples_of(double ppm, lease::Duration trip, int count = 100) {
  std::vector<ClockSample> samples;
  for (int i = 0; i < count; ++i) {
    const lease::Duration at = i * std::chrono::milliseconds(100);
    const lease::Duration read = at + trip / 2;
    const auto shown = lease::Duration(
        static_cast<std::int64_t>(static_cast<double>(read.count()) * (1 + ppm / 1e6)));
    ClockSample sample;
    sample.asked = {lease::HolderInstant(at), lease::PromiseInstant(at)};
    sample.answered = {lease::HolderInstant(at + trip), lease::PromiseInstant(at + trip)};
    sample.holder = shown + std::chrono::hours(5);
    sample.promise = shown + std::chrono::hours(4);
    samples.push_back(sample);
  }
  return samples;
}

class DoctorTest : public ::testing::Test {
 protected:
  DoctorTest() {
    settings_.node.id = raft::NodeId(1);
    settings_.data_dir = "/data/1";
    healthy_machine();
    healthy_disk();
    AddressFacts own;
    own.name = "--listen";
    own.address = "127.0.0.1:7201";
    own.own = true;
    own.loopback = true;
    facts_.addresses.push_back(own);
    for (const std::uint64_t id : {2U, 3U}) add_server(id);
    facts_.own_machine = "here";
    facts_.own_version = "9.9";
    facts_.measured = std::chrono::seconds(10);
  }

  void healthy_machine() {
    MachineFacts& machine = facts_.machine;
    machine.clock_source = "tsc";
    machine.clock_sources = "tsc hpet acpi_pm";
    machine.open_files_max = 1'000'000;
    machine.map_count_max = 262144;
    machine.queue_max = 4096;
    machine.overcommit = 0;
    machine.huge_pages = "madvise";
    machine.swap_used_bytes = 0;
    machine.memory_bytes = std::uint64_t{16} << 30U;
    machine.stolen_per_mille = 0;
    facts_.clock.synchronised = true;
    facts_.clock.vm_clock_problem = "no such file";
    facts_.pause = {9000, std::chrono::microseconds(300)};
  }
  void healthy_disk() {
    facts_.disk = {"/data/1", true, "ext4", "rw,relatime", false, std::uint64_t{100} << 30U, {}};
    facts_.disk.sync = SyncFacts{1000,
                                 std::chrono::microseconds(300),
                                 std::chrono::milliseconds(2),
                                 std::chrono::milliseconds(9),
                                 {}};
    facts_.folder.exists = true;
    facts_.folder.node = raft::NodeId(1);
  }
  ServerFacts& add_server(std::uint64_t id) {
    ServerFacts& server = facts_.servers.emplace_back();
    server.server = "10.0.0." + std::to_string(id) + ":7201";
    server.node = raft::NodeId(id);
    server.version = "9.9";
    server.uuid = "uuid" + std::to_string(id);
    server.machine = "machine" + std::to_string(id);
    server.samples = samples_of(20, std::chrono::milliseconds(1));
    server.timing = settings_.node.timing;
    server.agreed = true;
    return server;
  }

  /// "error disk-sync: what was found | what to do", of all that is not fine, a line each.
  std::string wrong_things() const {
    std::string text;
    for (const Finding& one : judge(settings_, facts_)) {
      if (one.level == Level::ok) continue;
      text += std::string(level_name(one.level)) + " " + one.check + ": " + one.found + " | " +
              one.cure + "\n";
    }
    return text;
  }
  /// The one thing that is wrong begins with `begin`, and its cure has `cure` in it.
  void expect(const std::string& begin, const std::string& cure) const {
    const std::string text = wrong_things();
    EXPECT_THAT(text, ::testing::StartsWith(begin));
    EXPECT_EQ(text.find('\n') + 1, text.size()) << text;
    EXPECT_THAT(text.substr(text.find(" | ")), ::testing::HasSubstr(cure));
  }

  server::ServeSettings settings_;
  Facts facts_;
};

}  // namespace leasehold::doctor
