// Snapshots as the tests of the stores handle them.
#pragma once

#include <leasehold/replica/state_machine.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

namespace leasehold::kv::testing {

/// Everything of a snapshot.
inline std::string bytes_of(const replica::Snapshot& snapshot) {
  std::string bytes(snapshot.size(), '\0');
  const auto read = snapshot.read(0, bytes.data(), bytes.size());
  EXPECT_TRUE(read) << read.error().message;
  return bytes;
}

/// A snapshot as it arrives: bytes, and what the message said of them.
class BytesSnapshot final : public replica::Snapshot {
 public:
  BytesSnapshot(std::string bytes, raft::Index last) : bytes_(std::move(bytes)), last_(last) {}
  raft::Index last() const override { return last_; }
  std::uint64_t size() const override { return bytes_.size(); }
  Result<void> read(std::uint64_t offset, char* to, std::size_t bytes) const override {
    if (offset > bytes_.size() || bytes > bytes_.size() - offset) {
      ADD_FAILURE() << "a read past the end";
      return Error{ErrorCode::io, "past the end"};
    }
    bytes_.copy(to, bytes, offset);
    return {};
  }

 private:
  std::string bytes_;
  raft::Index last_;
};

/// The same from a file; the index stands in the archive's head.
inline BytesSnapshot archive_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  std::uint64_t last = 0;
  for (std::size_t i = 21; i < 29; ++i) {
    last = (last << 8U) | static_cast<unsigned char>(bytes.at(i));
  }
  return {std::move(bytes), raft::Index(last)};
}

}  // namespace leasehold::kv::testing
