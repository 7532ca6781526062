// Recorded frames of the wire versions that this build speaks: it reads them, and sends the same
// bytes to a peer of that version.
#include <leasehold/wire/codec.h>

#include <leasehold/tests/wire/golden_frames.h>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::wire {
namespace {

constexpr std::size_t kLimit = 1U << 20U;

std::string unhex(std::string_view hex) {
  std::string bytes;
  for (std::size_t at = 0; at + 1 < hex.size(); at += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(at, 2)), nullptr, 16));
  }
  return bytes;
}

Result<PeerMessage> read(const std::string& bytes) {
  FrameReader reader(kLimit);
  reader.feed(bytes);
  const Result<std::optional<Frame>> frame = reader.next();
  if (!frame.ok()) return frame.error();
  if (!frame.value()) return Error{ErrorCode::malformed, "incomplete"};
  return decode_message(*frame.value());
}

std::string written(const PeerMessage& message, std::uint16_t version) {
  SendBuffer out;
  EXPECT_TRUE(encode_message(message, kLimit, out, version).ok());
  std::vector<std::string_view> views(1000);
  std::string all;
  const std::size_t count = out.front(views.data(), views.size());
  for (std::size_t i = 0; i < count; ++i) all += views[i];
  return all;
}

TEST(GoldenFrames, AreReadAndWrittenAsTheyAre) {
  for (const GoldenFrame& golden : kGoldenFrames) {
    const std::string bytes = unhex(golden.hex);
    const Result<PeerMessage> message = read(bytes);
    ASSERT_TRUE(message.ok()) << golden.name << ": " << message.error().message;
    EXPECT_EQ(written(message.value(), golden.version), bytes)
        << golden.name << " of version " << golden.version;
  }
}

TEST(GoldenFrames, AreThereOfEachVersionAndKind) {
  std::map<std::uint16_t, std::set<std::string>> names;
  std::map<std::uint16_t, std::set<std::size_t>> kinds;
  for (const GoldenFrame& golden : kGoldenFrames) {
    const PeerMessage message = read(unhex(golden.hex)).value();
    const auto* raft = std::get_if<raft::Message>(&message.payload);
    names[golden.version].insert(golden.name);
    kinds[golden.version].insert(raft != nullptr ? 100 + raft->index() : message.payload.index());
  }
  constexpr std::size_t kAll =
      std::variant_size_v<raft::Message> + std::variant_size_v<Payload> - 1;
  for (std::uint16_t version = kWireVersionMin; version <= kWireVersionMax; ++version) {
    // Beats came with version 4.
    const std::size_t all = version < kSettingsVersion ? kAll - 2 : kAll;
    EXPECT_EQ(kinds[version].size(), all) << "record the frames of version " << version;
    for (const std::string& name : names[kWireVersionMin])
      EXPECT_EQ(names[version].count(name), 1U);
  }
}

TEST(GoldenFrames, TheNewestVersionBindsPromisesToProcesses) {
  std::set<std::string> found;
  for (const GoldenFrame& golden : kGoldenFrames) {
    const PeerMessage message = read(unhex(golden.hex)).value();
    const auto* raft = std::get_if<raft::Message>(&message.payload);
    const auto* append = raft != nullptr ? std::get_if<raft::AppendRequest>(raft) : nullptr;
    const auto* reply = raft != nullptr ? std::get_if<raft::AppendReply>(raft) : nullptr;
    const lease::Epoch epoch{raft::Incarnation(4), 2};
    if (append != nullptr && append->bind) {
      found.insert(golden.name);
      EXPECT_EQ(append->bind, (raft::BindRequest{lease::Beat(300), epoch}));
    }
    if (reply != nullptr && reply->bound) {
      found.insert(golden.name);
      EXPECT_EQ(reply->bound, epoch);
    }
  }
  EXPECT_EQ(found, (std::set<std::string>{"append_request_binds", "append_reply_bound"}));
}

// What version 4 has more.
TEST(GoldenFrames, TheNewestVersionCarriesDriftAndSettings) {
  using namespace std::chrono_literals;
  for (const GoldenFrame& golden : kGoldenFrames) {
    const PeerMessage message = read(unhex(golden.hex)).value();
    const bool newer = golden.version >= kSettingsVersion;
    if (const auto* confirm = std::get_if<FormationConfirm>(&message.payload)) {
      EXPECT_EQ(confirm->settings.has_value(), newer);
      EXPECT_EQ(confirm->settings.value_or(raft::GroupSettings{}), raft::GroupSettings{});
    }
    const auto* raft = std::get_if<raft::Message>(&message.payload);
    if (raft == nullptr) continue;
    if (const auto* append = std::get_if<raft::AppendRequest>(raft)) {
      EXPECT_EQ(append->lease, 1s);
      EXPECT_EQ(append->drift_ppm, newer ? 100'000 : 0);
    }
    if (const auto* chunk = std::get_if<raft::SnapshotChunk>(raft)) {
      EXPECT_EQ(chunk->drift_ppm, newer ? 100'000 : 0);
    }
  }
}

}  // namespace
}  // namespace leasehold::wire
