// The manifest is text, so that a person can read it with head:
//
//   leasehold-backup 1
//   cluster production         bytes that are not printable, blanks and % as %20
//   cluster-id 16 hex digits
//   generation 16 hex digits
//   node 2
//   term 7
//   index 4711
//   revision 4700
//   keys 1200
//   taken 1763748000
//   bytes 123456               of the archive
//   check 8 hex digits         CRC32C of everything above
//
// and line feeds up to its fixed size. Of a recovery the format is 2, with this line before
// `check`:
//
//   recovered 7 4700           the end of the log: term and index
#include <leasehold/base/assert.h>
#include <leasehold/server/front/backup_manifest.h>
#include <leasehold/wire/crc32c.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <system_error>

namespace leasehold::server {
namespace {

constexpr unsigned kFormat = 1;
constexpr unsigned kRecoveredFormat = 2;
constexpr std::string_view kHeading = "leasehold-backup ";
constexpr std::string_view kCheck = "check ";
constexpr std::size_t kCheckDigits = 8;

std::string check_text(std::string_view bytes) {
  return fmt::format("{:08x}", wire::crc32c(bytes));
}

std::string escaped(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > ' ' && byte < 0x7f && c != '%') {
      out.push_back(c);
    } else {
      fmt::format_to(std::back_inserter(out), "%{:02x}", byte);
    }
  }
  return out;
}

/// Its result is compared with escaped() later, so it may accept too much.
std::string unescaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    unsigned byte = static_cast<unsigned char>(text.front());
    std::size_t taken = 1;
    if (text.front() == '%' && text.size() >= 3) {
      taken = 3;
      static_cast<void>(std::from_chars(text.data() + 1, text.data() + 3, byte, 16));
    }
    out.push_back(static_cast<char>(static_cast<unsigned char>(byte)));
    text.remove_prefix(taken);
  }
  return out;
}

/// Takes "name value\n" lines off the front. A line that is not as expected clears ok().
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}

  bool ok() const { return ok_; }
  std::string_view value(std::string_view name) {
    const std::size_t end = rest_.find('\n');
    ok_ = ok_ && end != std::string_view::npos && rest_.substr(0, name.size()) == name;
    if (!ok_) return {};
    const std::string_view value = rest_.substr(name.size(), end - name.size());
    rest_.remove_prefix(end + 1);
    return value;
  }
  std::uint64_t number(std::string_view name, int base = 10) { return parsed(value(name), base); }
  raft::LogId log_id(std::string_view name) {
    const std::string_view text = value(name);
    const std::size_t blank = std::min(text.find(' '), text.size());
    const std::uint64_t term = parsed(text.substr(0, blank), 10);
    const std::uint64_t index = parsed(text.substr(std::min(blank + 1, text.size())), 10);
    return {raft::Term(term), raft::Index(index)};
  }

 private:
  std::uint64_t parsed(std::string_view text, int base) {
    std::uint64_t number = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number, base);
    ok_ = ok_ && read.ec == std::errc() && read.ptr == text.data() + text.size();
    return ok_ ? number : 0;
  }

  std::string_view rest_;
  bool ok_ = true;
};

bool valid(const BackupManifest& manifest) {
  return !manifest.cluster.empty() && manifest.cluster.size() <= kClusterNameBytesMax &&
         manifest.generation != 0 && manifest.cluster_id != 0 && manifest.index > raft::Index(0) &&
         (!manifest.recovered_end || manifest.recovered_end->index < manifest.index);
}

std::string spelled(const BackupManifest& manifest) {
  std::string out = fmt::format(
      "{}{}\ncluster {}\ncluster-id {:016x}\ngeneration {:016x}\n"
      "node {}\nterm {}\nindex {}\nrevision {}\nkeys {}\ntaken {}\nbytes {}\n",
      kHeading, manifest.recovered_end ? kRecoveredFormat : kFormat, escaped(manifest.cluster),
      manifest.cluster_id, manifest.generation, manifest.node.value(), manifest.term.value(),
      manifest.index.value(), manifest.revision, manifest.keys, manifest.taken_s,
      manifest.archive_bytes);
  if (const auto& end = manifest.recovered_end) {
    out += fmt::format("recovered {} {}\n", end->term.value(), end->index.value());
  }
  out += fmt::format("{}{}\n", kCheck, check_text(out));
  LEASEHOLD_ASSERT(out.size() <= kManifestBytes);
  out.resize(kManifestBytes, '\n');
  return out;
}

/// The format number counts only if the check is right: otherwise the manifest is damaged.
bool check_holds(std::string_view bytes) {
  const std::size_t end = bytes.find_last_not_of('\n');
  if (end == std::string_view::npos || end + 1 < kCheck.size() + kCheckDigits) return false;
  const std::size_t at = end + 1 - kCheckDigits - kCheck.size();
  return bytes.substr(at, kCheck.size()) == kCheck &&
         bytes.substr(at + kCheck.size(), kCheckDigits) == check_text(bytes.substr(0, at));
}

}  // namespace

std::string encode_manifest(const BackupManifest& manifest) {
  LEASEHOLD_ASSERT(valid(manifest));
  return spelled(manifest);
}

Result<BackupManifest> decode_manifest(std::string_view bytes) {
  bytes = bytes.substr(0, kManifestBytes);
  if (bytes.substr(0, kHeading.size()) != kHeading) {
    return Error{ErrorCode::corrupted,
                 "it does not begin like a backup: give --from a file that leasehold backup wrote"};
  }
  const Error damaged{ErrorCode::corrupted,
                      "its manifest is damaged: copy the backup again from where it was written, "
                      "or take another one"};
  if (bytes.size() < kManifestBytes || !check_holds(bytes)) return damaged;
  Lines in(bytes);
  const std::uint64_t format = in.number(kHeading);
  if (in.ok() && format != kFormat && format != kRecoveredFormat) {
    return Error{ErrorCode::unsupported_format,
                 fmt::format("the backup has format {}, this build knows {} and {}: use a newer "
                             "build",
                             format, kFormat, kRecoveredFormat)};
  }
  BackupManifest manifest;
  manifest.cluster = unescaped(in.value("cluster "));
  manifest.cluster_id = in.number("cluster-id ", 16);
  manifest.generation = in.number("generation ", 16);
  manifest.node = raft::NodeId(in.number("node "));
  manifest.term = raft::Term(in.number("term "));
  manifest.index = raft::Index(in.number("index "));
  manifest.revision = in.number("revision ");
  manifest.keys = in.number("keys ");
  manifest.taken_s = in.number("taken ");
  manifest.archive_bytes = in.number("bytes ");
  if (format == kRecoveredFormat) manifest.recovered_end = in.log_id("recovered ");
  // The lines above may accept several spellings; only the canonical one passes here.
  if (!in.ok() || !valid(manifest) || spelled(manifest) != bytes) return damaged;
  return manifest;
}

std::string generation_text(std::uint64_t generation) {
  return fmt::format("{:016x}", generation);
}

}  // namespace leasehold::server
