// What the kernel's files say, planted in a folder.
#include <leasehold/doctor/gather.h>
#include <leasehold/doctor/system_files.h>
#include <leasehold/tests/base/temporary_folder.h>

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace leasehold::doctor {
namespace {

class SystemFiles : public ::testing::Test {
 protected:
  void plant(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  std::string root() const { return folder_.path() + "/"; }

  TemporaryFolder folder_;
};

constexpr const char* kMounts = R"(22 1 8:2 / / rw,relatime shared:1 - ext4 /dev/sda2 rw
30 22 0:25 / /data rw,noatime shared:2 - xfs /dev/sdb1 rw,nobarrier
31 22 0:26 / /data\040two rw - nfs4 host:/x rw,vers=4.2
32 30 0:27 / /data/fast rw - tmpfs tmpfs rw,size=1g
)";

TEST(Mounts, TheLongestPointThatContainsTheFolderCounts) {
  EXPECT_EQ(mount_of(kMounts, "/data")->kind, "xfs");
  EXPECT_EQ(mount_of(kMounts, "/data")->options, "rw,noatime,rw,nobarrier");
  EXPECT_EQ(mount_of(kMounts, "/data/1")->kind, "xfs");
  EXPECT_EQ(mount_of(kMounts, "/data/fast/1")->kind, "tmpfs");
  EXPECT_EQ(mount_of(kMounts, "/data two/1")->kind, "nfs4");
  EXPECT_EQ(mount_of(kMounts, "/database")->kind, "ext4");
  EXPECT_FALSE(mount_of("no mounts here\n1 2 3\n", "/data"));
}

TEST(Locks, TheHolderIsFoundByDeviceAndNumber) {
  const std::string locks =
      "1: POSIX  ADVISORY  WRITE 11 fe:00:77 0 EOF\n"
      "2: FLOCK  ADVISORY  WRITE 12 fe:00:77 0 EOF\n"
      "2: -> FLOCK  ADVISORY  WRITE 13 fe:00:78 0 EOF\n"
      "3: FLOCK  ADVISORY  WRITE 14 00:2a:78 0 EOF\n";
  EXPECT_EQ(lock_holder(locks, 0xfe, 0, 77), 12U);
  EXPECT_EQ(lock_holder(locks, 0xfe, 0, 78), 0U);
  EXPECT_EQ(lock_holder(locks, 0, 0x2a, 78), 14U);
  EXPECT_EQ(lock_holder("", 0xfe, 0, 77), 0U);
}

TEST_F(SystemFiles, WhatIsNotThereIsNotKnown) {
  const MachineFacts facts = look_at_machine(root());
  EXPECT_EQ(facts.clock_source, "");
  EXPECT_FALSE(facts.virtual_machine);
  EXPECT_FALSE(facts.open_files_max);
  EXPECT_FALSE(facts.swap_used_bytes);
  EXPECT_FALSE(facts.cpu_quota);
  EXPECT_FALSE(facts.memory_limit_bytes);
}

TEST_F(SystemFiles, AMachineIsReadWhole) {
  plant("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n");
  plant("sys/devices/system/clocksource/clocksource0/available_clocksource", "hpet acpi_pm \n");
  plant("proc/cpuinfo", "flags\t\t: fpu vme hypervisor lahf_lm\n");
  plant("proc/self/limits",
        "Limit                     Soft Limit           Hard Limit           Units     \n"
        "Max open files            1024                 4096                 files     \n");
  plant("proc/sys/vm/max_map_count", "1000\n");
  plant("proc/sys/net/core/somaxconn", "128\n");
  plant("proc/sys/vm/overcommit_memory", "2\n");
  plant("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n");
  plant("proc/swaps",
        "Filename\tType\tSize\tUsed\tPriority\n/dev/a partition 1000 20 -2\n/b file 9 5 -3\n");
  plant("proc/meminfo", "MemTotal:        2048 kB\nMemFree: 1 kB\n");
  const MachineFacts facts = look_at_machine(root());
  EXPECT_EQ(facts.clock_source, "hpet");
  EXPECT_EQ(facts.clock_sources, "hpet acpi_pm ");
  EXPECT_TRUE(facts.virtual_machine);
  EXPECT_EQ(facts.open_files_max, 4096U);
  EXPECT_EQ(facts.map_count_max, 1000U);
  EXPECT_EQ(facts.queue_max, 128U);
  EXPECT_EQ(facts.overcommit, 2U);
  EXPECT_EQ(facts.huge_pages, "always");
  EXPECT_EQ(facts.swap_used_bytes, 25U << 10U);
  EXPECT_EQ(facts.memory_bytes, 2048U << 10U);
}

TEST_F(SystemFiles, TheLeastLimitOfTheGroupsAboveCounts) {
  plant("proc/self/cgroup", "0::/system.slice/leasehold.service\n");
  plant("sys/fs/cgroup/system.slice/leasehold.service/memory.max", "max\n");
  plant("sys/fs/cgroup/system.slice/memory.max", "1048576\n");
  plant("sys/fs/cgroup/system.slice/leasehold.service/cpu.max", "50000 100000\n");
  plant("sys/fs/cgroup/system.slice/leasehold.service/cpu.stat",
        "usage_usec 5\nnr_periods 9\nnr_throttled 4\n");
  plant("sys/fs/cgroup/system.slice/cpu.max", "max 100000\n");
  const MachineFacts facts = look_at_machine(root());
  EXPECT_EQ(facts.memory_limit_bytes, 1048576U);
  EXPECT_EQ(facts.cpu_quota, 0.5);
  EXPECT_EQ(facts.cpu_throttled, 4U);
}

TEST_F(SystemFiles, GroupsOfTheFirstVersionAreRead) {
  plant("proc/self/cgroup", "5:cpu,cpuacct:/a\n4:memory:/b\n");
  plant("sys/fs/cgroup/memory/b/memory.limit_in_bytes", "777\n");
  plant("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "150000\n");
  plant("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
  plant("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  plant("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  const MachineFacts facts = look_at_machine(root());
  EXPECT_EQ(facts.memory_limit_bytes, 777U);
  EXPECT_EQ(facts.cpu_quota, 1.5);
}

TEST_F(SystemFiles, TimeThatTheHostTookIsTheEighthNumber) {
  plant("proc/stat", "cpu  10 0 20 900 5 0 0 65 0 0\ncpu0 1 1 1 1 1 1 1 1\n");
  const ProcessorTime time = processor_time(root());
  EXPECT_EQ(time.all, 1000U);
  EXPECT_EQ(time.stolen, 65U);
}

TEST_F(SystemFiles, ADiskIsKnownByItsMount) {
  std::filesystem::create_directories(folder_.path() + "/data");
  const std::string real = std::filesystem::canonical(folder_.path());
  plant("proc/self/mountinfo",
        "22 1 8:2 / / rw - ext4 /dev/a rw\n30 22 0:9 / " + real + " rw - fuse.sshfs x rw\n");
  DiskFacts facts = look_at_disk(root(), folder_.path() + "/data");
  EXPECT_TRUE(facts.made);
  EXPECT_EQ(facts.kind, "fuse.sshfs");
  EXPECT_GT(facts.free_bytes.value_or(0), 0U);
  facts = look_at_disk(root(), folder_.path() + "/later/data");
  EXPECT_FALSE(facts.made);
  EXPECT_EQ(facts.folder, real);
  EXPECT_EQ(facts.kind, "fuse.sshfs");
}

TEST_F(SystemFiles, TheScratchFileIsGoneAfterTheSyncs) {
  int asked = 0;
  const SyncFacts facts = measure_syncs(folder_.path(), [&asked] { return ++asked > 5; });
  EXPECT_EQ(facts.syncs, 5U);
  EXPECT_FALSE(facts.error);
  EXPECT_LE(facts.p50, facts.p99);
  EXPECT_LE(facts.p99, facts.longest);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(SystemFiles, AFolderThatCannotBeWrittenIsAnError) {
  const SyncFacts facts = measure_syncs(folder_.path() + "/nowhere", [] { return false; });
  ASSERT_TRUE(facts.error);
  EXPECT_EQ(facts.error->code, ErrorCode::io);
}

}  // namespace
}  // namespace leasehold::doctor
