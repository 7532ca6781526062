// The marker shows that the machine was stopped from outside; a file replaces the device's page.
#include <leasehold/node/machine_clock.h>
#include <leasehold/tests/base/temporary_folder.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace leasehold::node {
namespace {

using testing::HasSubstr;

class MachineMarkerTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = folder_.path("vmclock");
    page_ = std::string(4096, '\0');
    page_.replace(0, 4, "VCLK");
    put(4, 4096, 4);
    put(8, 1, 2);
    put(16, 7, 8);
    write();
  }

  void put(std::size_t at, std::uint64_t number, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) {
      page_[at + i] = static_cast<char>(static_cast<unsigned char>(number >> (8 * i)));
    }
  }
  /// In place, as the host does it: a mapping of the file sees it.
  void write() {
    std::ofstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
    if (!file) file.open(path_, std::ios::binary);
    file << page_;
  }
  MachineMarker::Options options() const {
    MachineMarker::Options options;
    options.vm_clock = path_;
    options.vm_clock_required = true;
    options.generation_events = false;
    return options;
  }
  std::unique_ptr<MachineMarker> open() const {
    auto opened = MachineMarker::open(options());
    EXPECT_TRUE(opened.ok()) << opened.error().message;
    return std::move(opened).value();
  }

  TemporaryFolder folder_;
  std::string path_;
  std::string page_;
};

TEST_F(MachineMarkerTest, AStopIsADisruptionMarkerThatChanged) {
  const auto marker = open();
  EXPECT_FALSE(marker->changed());
  EXPECT_EQ(marker->watched(), "the VM clock " + path_);
  put(16, 8, 8);
  write();
  EXPECT_TRUE(marker->changed());
}

TEST_F(MachineMarkerTest, EachByteOfTheMarkerCounts) {
  for (std::size_t i = 0; i < 8; ++i) {
    const auto marker = open();
    page_[16 + i] = static_cast<char>(page_[16 + i] ^ 1);
    write();
    EXPECT_TRUE(marker->changed()) << i;
  }
}

TEST_F(MachineMarkerTest, WhatElseIsInThePageMayChange) {
  const auto marker = open();
  put(12, 2, 4);  // the sequence of the host's updates
  put(40, 123456789, 8);
  write();
  EXPECT_FALSE(marker->changed());
}

TEST_F(MachineMarkerTest, MostMachinesHaveNoSuchDevice) {
  MachineMarker::Options wanted = options();
  wanted.vm_clock = folder_.path("none");
  const auto required = MachineMarker::open(wanted);
  ASSERT_FALSE(required.ok());
  EXPECT_EQ(required.error().code, ErrorCode::io);
  EXPECT_THAT(required.error().message, HasSubstr("--vm-clock off"));
  wanted.vm_clock_required = false;
  const auto without = MachineMarker::open(wanted);
  ASSERT_TRUE(without.ok());
  EXPECT_EQ(without.value()->watched(), "nothing");
  EXPECT_FALSE(without.value()->changed());
}

TEST_F(MachineMarkerTest, AnotherFileIsRefused) {
  page_[0] = 'X';
  write();
  EXPECT_EQ(MachineMarker::open(options()).error().code, ErrorCode::malformed);
  std::filesystem::resize_file(path_, 100);
  EXPECT_THAT(MachineMarker::open(options()).error().message, HasSubstr("shorter than a page"));
}

TEST_F(MachineMarkerTest, AnotherVersionIsRefusedWithBothNumbers) {
  put(8, 2, 2);
  write();
  const auto opened = MachineMarker::open(options());
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::unsupported_format);
  EXPECT_THAT(opened.error().message, HasSubstr("version 2"));
  EXPECT_THAT(opened.error().message, HasSubstr("version 1"));
}

// Where the kernel has such events, this only shows that the thread ends.
TEST_F(MachineMarkerTest, ListensUntilItIsDestroyed) {
  MachineMarker::Options wanted = options();
  wanted.generation_events = true;
  const auto opened = MachineMarker::open(wanted);
  ASSERT_TRUE(opened.ok());
  EXPECT_FALSE(opened.value()->changed());
}

bool tells(const std::string& event) {
  return tells_new_generation(event.data(), event.size());
}

TEST(KernelEvent, OfANewGenerationIsKnownByItsVariable) {
  using namespace std::string_literals;
  const std::string head =
      "change@/devices/platform/VMGENCTR:00\0ACTION=change\0"
      "DEVPATH=/devices/platform/VMGENCTR:00\0"s;
  EXPECT_TRUE(tells(head + "SUBSYSTEM=platform\0NEW_VMGENID=1\0SEQNUM=9\0"s));
  EXPECT_TRUE(tells(head + "NEW_VMGENID=1"s));
  EXPECT_FALSE(tells(head + "SUBSYSTEM=platform\0SEQNUM=9\0"s));
  EXPECT_FALSE(tells(head + "SYNTH_ARG_NEW_VMGENID=1\0"s));
  EXPECT_FALSE(tells("add@/x\0ACTION=add\0NEW_VMGENID=1\0"s));
  EXPECT_FALSE(tells(""s));
  EXPECT_FALSE(tells("\0\0\0"s));
}

TEST_F(MachineMarkerTest, AStoppedMachinesClockEndsEveryLease) {
  const MachineClock clock(open());
  const lease::HolderInstant before = clock.holder_now();
  EXPECT_LT(before, clock.now().holder + std::chrono::seconds(1));
  EXPECT_FALSE(clock.disrupted());
  put(16, 8, 8);
  write();
  EXPECT_TRUE(clock.disrupted());
  EXPECT_EQ(clock.holder_now(), lease::HolderInstant::never());
}

}  // namespace
}  // namespace leasehold::node
