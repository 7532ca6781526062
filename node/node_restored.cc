// The file RESTORED is text, so that a person can read it:
//
//   leasehold-restored 1
//   generation 16 hex digits
//   index 4711
//   check 8 hex digits     CRC32C of everything above
//
// In a group that was recovered the format is 2, and before `check` stand
//
//   given-up 16 hex digits     the cluster id of the group that was given up
//   end 7 4700                 where its log ended: term and index
//   recovered 1763748000       seconds since 1970
//
// Only the existence of RESTORING matters, not its content.
#include <leasehold/base/assert.h>
#include <leasehold/node/node_restored.h>
#include <leasehold/storage/descriptor.h>
#include <leasehold/storage/private_folder.h>
#include <leasehold/wire/crc32c.h>

#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <string_view>
#include <system_error>

namespace leasehold::node {
namespace {

constexpr unsigned kRestoredFormat = 1;
constexpr unsigned kRecoveredFormat = 2;
constexpr std::string_view kHeading = "leasehold-restored ";
constexpr const char* kName = "/RESTORED";
constexpr const char* kBegunName = "/RESTORING";
constexpr std::string_view kBegunText =
    "leasehold restore began here and has not finished: run it again.\n";
constexpr std::size_t kBytesMax = 1024;

/// The number behind `name`; 0 if there is none.
std::uint64_t number_behind(std::string_view text, std::string_view name, int base) {
  const std::size_t at = text.find(name);
  std::uint64_t number = 0;
  if (at == std::string_view::npos) return 0;
  text.remove_prefix(at + name.size());
  static_cast<void>(std::from_chars(text.data(), text.data() + text.size(), number, base));
  return number;
}

Error system_error(const std::string& what, int code) {
  return {ErrorCode::io, fmt::format("{}: {}", what, std::generic_category().message(code))};
}

/// Makes the content durable, not the name.
Result<void> write_file(const std::string& path, std::string_view text) {
  const storage::Descriptor file{
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, storage::kPrivateFileMode)};
  const bool written =
      file.get() >= 0 &&
      ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      ::fsync(file.get()) == 0;
  if (!written) return system_error("cannot write " + path, errno);
  return {};
}

}  // namespace

std::string encode_restored(const Restored& restored) {
  std::string body = fmt::format("{}{}\ngeneration {:016x}\nindex {}\n", kHeading,
                                 restored.recovered ? kRecoveredFormat : kRestoredFormat,
                                 restored.generation, restored.base.value());
  if (const auto& recovered = restored.recovered) {
    body += fmt::format("given-up {:016x}\nend {} {}\nrecovered {}\n", recovered->cluster_id,
                        recovered->end.term.value(), recovered->end.index.value(), recovered->at_s);
  }
  return fmt::format("{}check {:08x}\n", body, wire::crc32c(body));
}

Result<Restored> decode_restored(const std::string& text) {
  const std::uint64_t format = number_behind(text, kHeading, 10);
  const bool plain = text.find(fmt::format("{}{}\n", kHeading, format)) == 0;
  const bool recovered = format == kRecoveredFormat;
  if (plain && format != kRestoredFormat && !recovered) {
    return Error{ErrorCode::unsupported_format,
                 fmt::format("it has format {}, this build knows {} and {}: use a newer build",
                             format, kRestoredFormat, kRecoveredFormat)};
  }
  Restored restored;
  restored.generation = number_behind(text, "\ngeneration ", 16);
  restored.base = raft::Index(number_behind(text, "\nindex ", 10));
  if (recovered) {
    Recovered& from = restored.recovered.emplace();
    from.cluster_id = number_behind(text, "\ngiven-up ", 16);
    from.end.term = raft::Term(number_behind(text, "\nend ", 10));
    from.end.index =
        raft::Index(number_behind(text, fmt::format("\nend {} ", from.end.term.value()), 10));
    from.at_s = number_behind(text, "\nrecovered ", 10);
  }
  const bool named = !recovered || restored.recovered->cluster_id != 0;
  // The lines above are lenient; this accepts only the exact text that encode_restored() writes.
  if (restored.generation == 0 || !named || encode_restored(restored) != text) {
    return Error{ErrorCode::corrupted,
                 "it is damaged: restore this directory again from the backup"};
  }
  return restored;
}

std::string given_up_text(const Recovered& recovered) {
  const std::string from =
      recovered.end == raft::LogId{}
          ? std::string("its groups were recovered from their logs")
          : fmt::format("this group was recovered from entry {} of term {} of its log",
                        recovered.end.index.value(), recovered.end.term.value());
  return fmt::format(
      "cluster {:016x} was given up: its majority was lost, and {} (leasehold recover). Do "
      "not start this directory again: keep it until nobody misses what it holds, then remove it, "
      "and add the node with an empty one",
      recovered.cluster_id, from);
}

Result<std::optional<Restored>> load_restored(const std::string& data_dir) {
  const auto begun = restoration_begun(data_dir);
  if (!begun.ok()) return begun.error();
  if (begun.value()) {
    return Error{ErrorCode::corrupted,
                 fmt::format("{}: a backup was being restored to this directory and it never "
                             "ended: run the same leasehold restore again, or remove the directory",
                             data_dir)};
  }
  const std::string path = data_dir + kName;
  const storage::Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.get() < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::optional<Restored>();
    return system_error("cannot open " + path, errno);
  }
  std::string text(kBytesMax, '\0');
  const ssize_t length = ::read(file.get(), text.data(), text.size());
  if (length < 0) return system_error("cannot read " + path, errno);
  text.resize(static_cast<std::size_t>(length));
  const auto restored = decode_restored(text);
  if (!restored.ok()) {
    return Error{restored.error().code, fmt::format("{}: {}", path, restored.error().message)};
  }
  return std::optional<Restored>(restored.value());
}

Result<bool> restoration_begun(const std::string& data_dir) {
  const std::string path = data_dir + kBegunName;
  if (::access(path.c_str(), F_OK) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  return system_error("cannot look for " + path, errno);
}

Result<void> begin_restoration(const std::string& data_dir) {
  if (auto made = storage::make_private_folder(data_dir); !made.ok()) return made.error();
  if (auto written = write_file(data_dir + kBegunName, kBegunText); !written.ok()) return written;
  return storage::sync_folder(data_dir);
}

Result<void> finish_restoration(const std::string& data_dir, const Restored& restored) {
  LEASEHOLD_ASSERT(restored.generation != 0);
  const std::string path = data_dir + kName;
  const std::string fresh = path + ".new";
  if (auto written = write_file(fresh, encode_restored(restored)); !written.ok()) return written;
  if (std::rename(fresh.c_str(), path.c_str()) != 0) {
    return system_error("cannot name " + path, errno);
  }
  if (auto synced = storage::sync_folder(data_dir); !synced.ok()) return synced;
  const std::string begun = data_dir + kBegunName;
  if (::unlink(begun.c_str()) != 0) return system_error("cannot remove " + begun, errno);
  return storage::sync_folder(data_dir);
}

Result<void> check_new_log(const std::string& data_dir, const std::optional<Restored>& restored,
                           raft::Index durable) {
  if (durable == (restored ? restored->base : raft::Index(0))) return {};
  if (restored) {
    return Error{ErrorCode::corrupted,
                 fmt::format("{}: restored up to {}, but the state machine holds data up to {}: "
                             "remove this directory and restore it again",
                             data_dir, restored->base.value(), durable.value())};
  }
  return Error{ErrorCode::wrong_cluster,
               fmt::format("{}: the log is new, but the state machine holds data up to {}; restore "
                           "the log's folder, or remove the state machine's",
                           data_dir, durable.value())};
}

}  // namespace leasehold::node
