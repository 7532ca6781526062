// Files of a data directory other than the log, and the beginnings of snapshots and backups:
// memberships, heads of snapshots, archives, manifests, RESTORED, RETIRED. The first byte chooses
// which, and whether its length and its check are made right, so that the checks after these are
// reached. Each decoder accepts exactly what its encoder writes.
#include <leasehold/base/coding.h>
#include <leasehold/kv/rocksdb/rocksdb_archive.h>
#include <leasehold/node/node_file_head.h>
#include <leasehold/node/node_restored.h>
#include <leasehold/node/node_retired.h>
#include <leasehold/node/node_snapshot_file.h>
#include <leasehold/raft/membership.h>
#include <leasehold/server/front/backup_manifest.h>
#include <leasehold/tests/fuzz/fuzz.h>
#include <leasehold/tests/fuzz/input.h>
#include <leasehold/wire/crc32c.h>

#include <cstdint>
#include <cstdio>
#include <string>

namespace leasehold::fuzz {
namespace {

std::string check_line(std::string_view lines) {
  char line[32];
  std::snprintf(line, sizeof(line), "check %08x\n", wire::crc32c(lines));
  return line;
}

void put_little(std::string& to, std::size_t at, std::uint32_t value) {
  for (std::size_t i = 0; i < 4; ++i) to[at + i] = static_cast<char>(value >> (8 * i));
}

void take_membership(std::string_view bytes) {
  const auto membership = raft::decode_membership(bytes);
  if (!accepted(membership)) return;
  LEASEHOLD_ASSERT(raft::encode_membership(membership.value()).view() == bytes);
}

void take_snapshot_head(std::string bytes, bool seal) {
  constexpr std::size_t kLengthAt = 48;
  constexpr std::size_t kFixed = 52;
  if (seal && bytes.size() >= kFixed && bytes.size() < 65000) {
    put_little(bytes, kLengthAt, static_cast<std::uint32_t>(bytes.size() - kFixed));
    bytes.append(4, '\0');
    put_little(bytes, bytes.size() - 4, wire::crc32c(bytes.substr(0, bytes.size() - 4)));
  }
  const auto head = node::decode_snapshot_head(bytes);
  if (!accepted(head)) return;
  const std::string again = node::encode_snapshot_head(head.value());
  LEASEHOLD_ASSERT(bytes.compare(0, again.size(), again) == 0);
}

/// The front of a snapshot, with so many bytes behind it.
class FrontSnapshot final : public replica::Snapshot {
 public:
  FrontSnapshot(std::string_view front, std::uint64_t behind) : front_(front), behind_(behind) {}
  raft::Index last() const override { return raft::Index(1); }
  std::uint64_t size() const override { return front_.size() + behind_; }
  Result<void> read(std::uint64_t offset, char* to, std::size_t bytes) const override {
    if (offset + bytes > front_.size()) return Error{ErrorCode::io, "behind the front"};
    front_.copy(to, bytes, static_cast<std::size_t>(offset));
    return {};
  }

 private:
  const std::string_view front_;
  const std::uint64_t behind_;
};

/// In front of it: how many bytes of files stand behind it.
void take_file_head(std::string bytes, bool seal) {
  constexpr std::size_t kTableLengthAt = 8;
  constexpr std::size_t kTableAt = 12;
  const std::uint32_t behind = LittleReader(bytes).u32();
  bytes.erase(0, sizeof(behind));
  if (seal && bytes.size() >= kTableAt) {
    put_little(bytes, kTableLengthAt, static_cast<std::uint32_t>(bytes.size() - kTableAt));
    bytes.append(4, '\0');
    put_little(bytes, bytes.size() - 4, wire::crc32c(bytes.substr(0, bytes.size() - 4)));
  }
  const auto head = node::read_file_head(FrontSnapshot(bytes, behind));
  if (!accepted(head)) return;
  const std::string again = node::encode_file_head(head.value().files);
  LEASEHOLD_ASSERT(again.size() == head.value().files_at);
  LEASEHOLD_ASSERT(bytes.compare(0, again.size(), again) == 0);
}

void take_archive_head(std::string bytes, bool seal) {
  if (seal && bytes.size() >= kv::kArchiveStartBytes) {
    std::string length;
    BigWriter(length).u32(static_cast<std::uint32_t>(bytes.size() + kv::kArchiveCheckBytes));
    bytes.replace(kv::kArchiveStartBytes - length.size(), length.size(), length);
    BigWriter(bytes).u32(wire::crc32c(bytes));
  }
  const auto head = kv::decode_head(bytes);
  if (accepted(head)) LEASEHOLD_ASSERT(kv::encode_head(head.value()) == bytes);
}

void take_manifest(std::string bytes, bool seal) {
  if (seal && bytes.size() + 16 < server::kManifestBytes) {
    bytes += check_line(bytes);
    bytes.resize(server::kManifestBytes, '\n');
  }
  const auto manifest = server::decode_manifest(bytes);
  if (!accepted(manifest)) return;
  LEASEHOLD_ASSERT(server::encode_manifest(manifest.value()) ==
                   bytes.substr(0, server::kManifestBytes));
}

void take_restored(std::string text, bool seal) {
  if (seal) text += check_line(text);
  const auto restored = node::decode_restored(text);
  if (accepted(restored)) LEASEHOLD_ASSERT(node::encode_restored(restored.value()) == text);
}

/// The check stands in front of the report.
void take_retired(std::string text, bool seal) {
  const std::size_t head = text.find("\n\n");
  if (seal && head != std::string::npos) {
    const std::string lines = text.substr(0, head + 1);
    text.insert(head + 1, check_line(lines + text.substr(head + 1)));
  }
  const auto retired = node::decode_retired(text);
  if (accepted(retired)) LEASEHOLD_ASSERT(node::encode_retired(retired.value()) == text);
}

}  // namespace

void take(std::string_view input) {
  Input in(input);
  const std::uint8_t way = in.byte();
  const bool seal = way / 8 % 4 != 0;
  const std::string bytes(in.rest());
  switch (way % 8) {
    case 0: return take_membership(bytes);
    case 1: return take_snapshot_head(bytes, seal);
    case 2: return take_archive_head(bytes, seal);
    case 3: return take_manifest(bytes, seal);
    case 4: return take_file_head(bytes, seal);
    case 7: return take_retired(bytes, seal);
    default: return take_restored(bytes, seal);
  }
}

}  // namespace leasehold::fuzz
