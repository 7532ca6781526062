#include <leasehold/cli/backup_file.h>
#include <leasehold/kv/slot_layout.h>
#include <leasehold/server/host_cluster.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

namespace leasehold::cli {
namespace {

namespace fs = std::filesystem;

Error in_file(const std::string& path, const Error& error) {
  return {error.code, fmt::format("{}: {}", path, error.message)};
}

Result<Backup> open_backup(const std::string& from) {
  std::ifstream file(from, std::ios::binary);
  std::string bytes(server::kManifestBytes, '\0');
  std::error_code error;
  if (!file || fs::is_directory(from, error)) {
    return Error{ErrorCode::io, fmt::format("cannot read {}: {}", from,
                                            error  ? error.message()
                                            : file ? std::string("it is a folder")
                                                   : std::generic_category().message(errno))};
  }
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  auto manifest = server::decode_manifest(bytes);
  if (!manifest) return in_file(from, manifest.error());
  const std::uint64_t size = fs::file_size(from, error);
  const std::uint64_t expected = server::kManifestBytes + manifest.value().archive_bytes;
  if (error || size != expected) {
    return Error{
        ErrorCode::corrupted,
        fmt::format("{} has {} bytes instead of {}: copy the backup again from where it was "
                    "written, or take another one",
                    from, size, expected)};
  }
  auto archive = kv::RocksdbStore::open_archive(from, server::kManifestBytes);
  if (!archive) return archive.error();
  return Backup{std::move(manifest).value(), std::move(archive).value()};
}

}  // namespace

Result<Backup> verified_backup(const std::string& from) {
  auto backup = open_backup(from);
  if (!backup) return backup;
  const ShownArchive shown(*backup.value().archive, "checking " + from);
  const auto info = kv::RocksdbStore::verify(shown);
  if (!info) {
    const bool damaged = info.error().code == ErrorCode::corrupted;
    return Error{
        info.error().code,
        fmt::format(
            "{} is damaged: {}{}", from, info.error().message,
            damaged ? ". Copy it again from where it was written, or use another backup" : "")};
  }
  const server::BackupManifest& manifest = backup.value().manifest;
  if (info.value() !=
      kv::ArchiveInfo{manifest.cluster_id, manifest.index, manifest.revision, manifest.keys}) {
    return Error{ErrorCode::corrupted,
                 from + " is damaged: its manifest and its archive are of two backups"};
  }
  return backup;
}

Result<std::vector<server::BackupManifest>> verified_backups(
    const std::vector<std::string>& files) {
  std::vector<server::BackupManifest> manifests;
  std::vector<kv::SlotsOfState> states;
  for (const std::string& file : files) {
    const auto backup = verified_backup(file);
    if (!backup) return backup.error();
    manifests.push_back(backup.value().manifest);
    if (files.size() > 1 && !server::is_of_group(manifests.back().cluster, manifests.size())) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("{} is a backup of {}, not of group {}", file,
                               manifests.back().cluster, manifests.size())};
    }
    auto slots = kv::RocksdbStore::slots_of(*backup.value().archive);
    if (!slots) return Error{slots.error().code, file + ": " + slots.error().message};
    states.push_back({std::move(slots).value(), manifests.back().revision});
  }
  const bool recovered =
      std::any_of(manifests.begin(), manifests.end(),
                  [](const server::BackupManifest& one) { return one.recovered_end.has_value(); });
  if (const auto apart = kv::layout_problem(states)) {
    return Error{
        ErrorCode::invalid_argument,
        *apart + (files.size() == 1
                      ? ": it is the backup of one group of many, and needs the others"
                  : recovered ? ": it was on its way from one to the other when the majority was "
                                "lost. Put the files of both groups from one backup in the place "
                                "of these"
                              : ": these are not files of one leasehold backup")};
  }
  return manifests;
}

std::string summary(const server::BackupManifest& manifest) {
  return fmt::format("{} keys at index {}, revision {}", manifest.keys, manifest.index.value(),
                     manifest.revision);
}

}  // namespace leasehold::cli
