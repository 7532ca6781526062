// Each fault is found, alone, with a cure that names what to do.
#include <leasehold/tests/doctor/doctor_fixture.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <string>

namespace leasehold::doctor {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

TEST_F(DoctorTest, AHealthyNodeHasNothing) {
  EXPECT_EQ(wrong_things(), "");
}

// Clocks.

TEST_F(DoctorTest, ASlowClockSourceIsNamedWithTheWayToAFastOne) {
  facts_.machine.clock_source = "hpet";
  expect("warning clock-source: the kernel's clock is hpet", "echo tsc >");
  facts_.machine.clock_sources = "hpet acpi_pm";
  expect("warning clock-source", "dmesg | grep -i clocksource");
  facts_.machine.clock_source = "kvm-clock";
  EXPECT_EQ(wrong_things(), "");
}

TEST_F(DoctorTest, ATimeOfDayThatNobodyKeepsIsAWarning) {
  facts_.clock.synchronised = false;
  expect("warning clock-sync", "chronyd");
  facts_.clock.synchronised.reset();
  expect("skipped clock-sync", "");
}

TEST_F(DoctorTest, AClockThatIsTurnedByMoreThanTheBoundIsAnError) {
  settings_.node.timing.max_clock_drift_ppm = 10'000;
  for (ServerFacts& server : facts_.servers) server.timing = settings_.node.timing;
  facts_.clock.slewed_ppm = -83'000;
  expect("error clock-sync: the kernel turns the clock by -83000 ppm", "maxslewrate");
}

TEST_F(DoctorTest, ASuspendIsAWarningAndOneNowAnError) {
  facts_.clock.suspended_before = seconds(90);
  expect("warning suspend: this machine was suspended for 90 s", "systemctl mask");
  facts_.clock.suspended_now = seconds(2);
  expect("error suspend", "systemctl mask");
}

TEST_F(DoctorTest, AVirtualMachineWithoutAVmClockIsAWarningUnlessLeaseReadsAreOff) {
  facts_.machine.virtual_machine = true;
  expect("warning vm-clock", "--lease-reads off");
  settings_.vm_clock = "off";
  expect("warning vm-clock", "leave --vm-clock off out");
  settings_.server.lease_reads = false;
  EXPECT_EQ(wrong_things(), "");
}

TEST_F(DoctorTest, AVmClockThatIsNamedAndCannotBeUsedIsAnError) {
  settings_.vm_clock = "/dev/other";
  expect("error vm-clock: serve would not start: no such file", "--vm-clock");
}

TEST_F(DoctorTest, ProcessorTimeThatTheHostTakesIsAWarning) {
  facts_.machine.stolen_per_mille = 50;
  expect("warning stolen-time: the host took 5.0 %", "processors of its own");
}

TEST_F(DoctorTest, APauseIsJudgedByHeartbeatAndLease) {
  facts_.pause.longest = milliseconds(101);
  expect("warning pauses", "raise --lease");
  facts_.pause.longest = milliseconds(810);
  const std::string text = wrong_things();
  EXPECT_THAT(text, HasSubstr("error pauses"));
  EXPECT_THAT(text, HasSubstr("warning timing: with the longest pause, 810 ms"));
}

TEST_F(DoctorTest, ADriftThatNoTwoGoodClocksCanHaveIsAnError) {
  facts_.servers[0].samples = samples_of(300'000, milliseconds(1));
  expect("error clock-drift: the clock of 10.0.0.2:7201 runs 300000 ppm faster", "lease-reads=off");
  facts_.servers[0].samples = samples_of(-2'000, milliseconds(1));
  expect("warning clock-drift: the clock of 10.0.0.2:7201 runs 2000 ppm slower", "clock source");
}

TEST_F(DoctorTest, ADriftThatLongRoundTripsMayExplainIsNone) {
  facts_.servers[0].samples = samples_of(0, seconds(3), 20);
  settings_.node.timing.election_timeout = hours(1);
  settings_.node.timing.lease = hours(1);
  settings_.node.timing.max_round_trip = seconds(10);
  for (ServerFacts& server : facts_.servers) server.timing = settings_.node.timing;
  expect("skipped clock-drift: 10.0.0.2:7201: its answers took too long", "");
}

TEST_F(DoctorTest, AServerThatTellsNoClocksIsSkippedWithItsWords) {
  facts_.servers[1].samples.clear();
  facts_.servers[1].clock_problem = "ERR unknown subcommand";
  expect("skipped clock-drift: 10.0.0.3:7201: ERR unknown subcommand", "");
}

TEST_F(DoctorTest, ASuspendOfAnotherMachineIsSeenByItsClocks) {
  for (ClockSample& sample : facts_.servers[0].samples) sample.holder += hours(1);
  EXPECT_EQ(wrong_things(), "");
  auto& samples = facts_.servers[0].samples;
  for (std::size_t i = 40; i < samples.size(); ++i) {
    samples[i].holder += seconds(1);
    samples[i].promise -= lease::Duration(0);
  }
  EXPECT_THAT(wrong_things(), HasSubstr("error suspend: the machine of 10.0.0.2:7201 was"));
}

// Limits.

TEST_F(DoctorTest, FilesAreCountedAgainstClients) {
  facts_.machine.open_files_max = 4096;
  expect("error open-files: at most 4096 files", "LimitNOFILE=10512");
  facts_.machine.open_files_max = 10'100;
  expect("warning open-files", "--clients-max 9588");
  facts_.machine.open_files_max = kUnlimited;
  EXPECT_EQ(wrong_things(), "");
}

TEST_F(DoctorTest, KernelSettingsAreNamedAsSysctlTakesThem) {
  facts_.machine.map_count_max = 1000;
  expect("warning map-count", "sysctl -w vm.max_map_count=");
  facts_.machine.map_count_max = 65530;
  facts_.machine.queue_max = 128;
  expect("warning connection-queue", "sysctl -w net.core.somaxconn=");
  facts_.machine.queue_max = 512;
  facts_.machine.overcommit = 2;
  expect("warning overcommit", "sysctl -w vm.overcommit_memory=0");
  facts_.machine.overcommit = 1;
  facts_.machine.huge_pages = "always";
  expect("warning huge-pages", "echo madvise >");
}

TEST_F(DoctorTest, SwapInUseIsAWarning) {
  facts_.machine.swap_used_bytes = 15U << 20U;
  EXPECT_EQ(wrong_things(), "");
  facts_.machine.swap_used_bytes = 64U << 20U;
  expect("warning swap: 64.0 MiB of swap are in use", "swapoff -a");
}

TEST_F(DoctorTest, AQuotaBelowAProcessorIsAnError) {
  facts_.machine.cpu_quota = 0.5;
  expect("error cpu-quota: a quota of 0.50 processors", "CPUQuota=300%");
  facts_.machine.cpu_quota = 2;
  expect("warning cpu-quota", "--cpus 3");
  facts_.machine.cpu_quota = 4;
  EXPECT_EQ(wrong_things(), "");
  facts_.machine.cpu_throttled = 1;
  expect("warning cpu-quota", "no quota");
}

TEST_F(DoctorTest, MemoryIsCountedAgainstWhatTheSettingsMayUse) {
  const std::uint64_t needed = memory_needed(settings_);
  EXPECT_GT(needed, settings_.server.client_memory_max + settings_.read_cache);
  facts_.machine.memory_limit_bytes = needed - 1;
  expect("error memory: the control group allows", "--client-memory-max");
  facts_.machine.memory_limit_bytes = needed;
  expect("warning memory", "MemoryMax=");
  facts_.machine.memory_limit_bytes = std::uint64_t{1} << 62U;  // no limit, in the first version
  facts_.machine.memory_bytes = needed - 1;
  expect("error memory: this machine has", "--read-cache");
}

// The disk.

TEST_F(DoctorTest, ADiskSlowerThanTheElectionTimeoutIsAnError) {
  facts_.disk.sync->longest = milliseconds(101);
  expect("warning disk-sync", "--election-timeout 500ms");
  facts_.disk.sync->longest = milliseconds(300);
  expect("error disk-sync", "--election-timeout 1s");
  facts_.disk.sync->longest = milliseconds(90);
  facts_.disk.sync->p50 = milliseconds(21);
  expect("warning disk-sync", "a faster disk");
}

TEST_F(DoctorTest, ASyncThatNoDeviceCanHaveDoneIsAnError) {
  facts_.disk.sync->p50 = microseconds(1);
  expect("error disk-sync", "put --data-dir elsewhere");
  facts_.disk.sync->p50 = microseconds(300);
  facts_.disk.rotating = true;
  expect("warning disk-sync", "hdparm -W 0");
  // Such a disk is its host's, and may be anything.
  facts_.machine.virtual_machine = true;
  settings_.server.lease_reads = false;
  EXPECT_EQ(wrong_things(), "");
}

TEST_F(DoctorTest, FileSystemsThatAreNoDiskAreErrors) {
  for (const char* kind : {"tmpfs", "nfs4", "cifs", "fuse.sshfs", "fuseblk", "9p"}) {
    facts_.disk.kind = kind;
    expect("error disk-kind: /data/1 lies on " + std::string(kind), "put --data-dir on a disk");
  }
  facts_.disk.kind = "overlay";
  expect("warning disk-kind", "mount a volume");
  facts_.disk.options = "rw,volatile";
  expect("error disk-kind", "remount without volatile");
  facts_.disk.kind = "unheard-of";
  facts_.disk.options = "rw";
  expect("warning disk-kind", "put --data-dir on a disk");
}

TEST_F(DoctorTest, MountsWithoutBarriersAreErrors) {
  for (const char* option : {"nobarrier", "barrier=0", "ro"}) {
    facts_.disk.options = std::string("noatime,") + option;
    expect("error disk-kind", "mount -o remount without " + std::string(option));
  }
  facts_.disk.options = "rw,errors=remount-ro";
  EXPECT_EQ(wrong_things(), "");
}

TEST_F(DoctorTest, SpaceIsCountedAgainstTheLog) {
  facts_.disk.free_bytes = 300U << 20U;
  expect("warning disk-space: 300.0 MiB are free", "--log-tail");
  facts_.disk.free_bytes = 100U << 20U;
  expect("error disk-space", "free some space");
  facts_.disk.free_bytes = std::uint64_t{1} << 40U;
  facts_.disk.sync->error = Error{ErrorCode::overloaded, "cannot write x: no space"};
  expect("error disk-space: cannot write x", "free some space");
  facts_.disk.sync->error = Error{ErrorCode::io, "cannot make x: permission denied"};
  expect("error disk-sync: cannot make x", "writable");
}

TEST_F(DoctorTest, SyncsThatWereNotMeasuredAreSkipped) {
  facts_.disk.sync.reset();
  expect("skipped disk-sync: left out", "");
  facts_.disk.made = false;
  expect("skipped disk-sync: /data/1 does not exist yet", "");
}

// The numbers of the lease.

TEST_F(DoctorTest, ARenewalThatTakesLongerThanAllowedIsJudgedByTheInequalities) {
  for (ServerFacts& server : facts_.servers) server.samples = samples_of(0, milliseconds(28));
  facts_.disk.sync->p99 = milliseconds(30);
  expect("warning timing: a renewal takes 58 ms here", "--max-round-trip 200ms");
  facts_.disk.sync->p99 = milliseconds(590);
  facts_.disk.sync->longest = milliseconds(90);
  expect(
      "error timing: a renewal takes 618 ms here (p99 of the network and of a sync): "
      "unavailable lease: heartbeat + max round trip + one retry",
      "raise --lease");
}

TEST_F(DoctorTest, AnElectionTimeoutOfAFewRoundTripsIsAWarning) {
  for (ServerFacts& server : facts_.servers) server.samples = samples_of(0, milliseconds(31));
  expect("warning election-timeout", "--election-timeout 500ms");
}

TEST_F(DoctorTest, TheNumbersOfTheGroupCountAndADifferenceIsAWarning) {
  for (ServerFacts& server : facts_.servers) server.timing->lease = seconds(3);
  expect("warning group-settings: these settings and the group differ: lease 1s and 3s",
         "leasehold settings set");
  EXPECT_EQ(timing_in_force(settings_, facts_).lease, seconds(3));
  facts_.servers[0].timing->max_clock_drift_ppm = 90'000;
  settings_.node.timing.lease = seconds(3);
  EXPECT_EQ(wrong_things(), "");
  facts_.servers[1].timing->heartbeat = milliseconds(90);
  facts_.servers[1].agreed = facts_.servers[0].agreed = false;
  expect(
      "warning group-settings: 10.0.0.2:7201 and 10.0.0.3:7201 follow different numbers: "
      "heartbeat 100ms and 90ms",
      "leasehold settings set, once");
}

}  // namespace
}  // namespace leasehold::doctor
