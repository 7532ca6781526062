// Inputs that chance alone would hardly find: frames that differ in a byte from good ones.
#include <leasehold/base/random.h>
#include <leasehold/tests/fuzz/fuzz.h>
#include <leasehold/tests/wire/random_message.h>
#include <leasehold/wire/codec.h>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace leasehold::fuzz {
namespace {

using namespace wire;

TEST(FuzzFrames, ChangedFramesOfEveryKind) {
  Random random(42);
  for (int i = 0; i < 30000; ++i) {
    SendBuffer out;
    ASSERT_TRUE(encode_message(random_message(random), 1U << 20U, out).ok());
    std::vector<std::string_view> views(100);
    const std::size_t count = out.front(views.data(), views.size());
    std::string frame;
    for (std::size_t v = 0; v < count; ++v) frame += views[v];
    // Way 1 takes what follows as a protobuf part and seals it: skip the header.
    const bool seal = random.chance(3, 4);
    std::string input = seal ? std::string("\x01\x00", 2) + frame.substr(kFrameHeaderBytes)
                             : std::string("\x00\x10", 2) + frame;
    const std::size_t at = 1 + random.below(input.size() - 1);
    input[at] = static_cast<char>(random.below(256));
    take(input);
  }
}

}  // namespace
}  // namespace leasehold::fuzz
