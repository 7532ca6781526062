#include <leasehold/kv/slot_layout.h>
#include <leasehold/server/backup.h>
#include <leasehold/server/backup_writer.h>
#include <leasehold/server/front/backup_manifest.h>
#include <leasehold/server/front/people_time.h>
#include <leasehold/storage/descriptor.h>
#include <leasehold/storage/private_folder.h>

#include <fmt/format.h>

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <random>
#include <system_error>
#include <utility>

namespace leasehold::server {
namespace {

namespace fs = std::filesystem;

/// Free space that a backup leaves on the disk: the log and the store need it before they treat the
/// disk as full.
constexpr std::uint64_t kSpareBytes = std::uint64_t{128} << 20U;
constexpr std::size_t kNameBytesMax = 128;
constexpr std::string_view kPartSuffix = ".part";
/// Niceness of the thread, from 0 (as the others) to 19: clients come first.
constexpr int kBackupNiceness = 10;

Error system_error(const std::string& what, int code) {
  const std::string advice =
      code == ENOSPC || code == EDQUOT ? ": free some space on its disk" : "";
  return {ErrorCode::io,
          fmt::format("{}: {}{}", what, std::generic_category().message(code), advice)};
}

/// Never 0.
std::uint64_t random_generation() {
  std::random_device device;
  const std::uint64_t high = device();
  const std::uint64_t low = device();
  const std::uint64_t generation = (high << 32U) | (low & 0xffffffffU);
  return generation == 0 ? 1 : generation;
}

}  // namespace

Backups::Backups(node::Group& node, kv::RocksdbStore& store, Options options)
    : node_(node),
      store_(store),
      options_(std::move(options)),
      folder_(options_.data_dir + "/backups") {
  remove_leftovers();
}

Backups::~Backups() {
  stop();
}

void Backups::remove_leftovers() const {
  std::error_code error;
  for (auto at = fs::directory_iterator(folder_, error); !error && at != fs::directory_iterator();
       at.increment(error)) {
    std::error_code ignored;
    if (at->path().extension() == kPartSuffix) fs::remove(at->path(), ignored);
  }
}

void Backups::stop() {
  std::thread thread;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    thread = std::move(thread_);
  }
  if (thread.joinable()) thread.join();
}

std::optional<BackupProgress> Backups::progress() const {
  const std::lock_guard lock(mutex_);
  if (!busy_) return std::nullopt;
  return BackupProgress{name_, written_.load(), size_.load()};
}

void Backups::start(std::string_view name, BackupWanted wanted, const Done& done) {
  auto path = new_path_of(name);
  if (!path) return done(path.error());
  const char* refusal = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) {
      refusal = "the node is stopping";
    } else if (busy_) {
      refusal = "another backup is being written";
    } else {
      if (thread_.joinable()) thread_.join();  // it has ended, except for its last answer
      busy_ = true;
      name_ = std::string(name);
      written_ = 0;
      size_ = 0;
      thread_ = std::thread([this, path = std::move(path).value(), wanted, done]() mutable {
        pthread_setname_np(pthread_self(), "lh-backup");
        // On Linux this affects only this thread. A hint: the backup also works without it.
        static_cast<void>(::setpriority(PRIO_PROCESS, 0, kBackupNiceness));
        Result<BackupDone> written = write(path, wanted);
        if (options_.notice) {
          options_.notice(
              written ? fmt::format("the backup {} is complete: index {}, {} bytes", path,
                                    written.value().manifest.index.value(), written.value().bytes)
                      : fmt::format("the backup {} failed: {}", path, written.error().message));
        }
        {
          const std::lock_guard ending(mutex_);
          busy_ = false;
        }
        done(std::move(written));
      });
    }
  }
  if (refusal != nullptr) {
    done(Error{stopping_ ? ErrorCode::stopped : ErrorCode::overloaded, refusal});
  }
}

/// Any file of the folder, and nothing outside it.
Result<std::string> Backups::path_of(std::string_view name) const {
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
  });
  const bool part = name.size() >= kPartSuffix.size() &&
                    name.substr(name.size() - kPartSuffix.size()) == kPartSuffix;
  if (!plain || part || name.empty() || name.front() == '.' || name.size() > kNameBytesMax) {
    return Error{ErrorCode::invalid_argument,
                 "a backup's name has 1 to 128 letters, digits, dots, dashes and underscores, "
                 "begins with no dot and does not end in .part"};
  }
  return fmt::format("{}/{}", folder_, name);
}

Result<std::string> Backups::new_path_of(std::string_view name) const {
  auto path = path_of(name);
  std::error_code error;
  if (path && fs::exists(fs::symlink_status(path.value(), error))) {
    return Error{ErrorCode::in_use, path.value() + " exists: choose another name"};
  }
  return path;
}

Result<std::string> Backups::read(std::string_view name, std::uint64_t offset) const {
  const auto path = path_of(name);
  if (!path) return path.error();
  const storage::Descriptor file{::open(path.value().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)};
  if (file.get() < 0 && errno == ENOENT) {
    return Error{ErrorCode::not_found, "there is no " + path.value()};
  }
  if (file.get() < 0) return system_error("cannot open " + path.value(), errno);
  std::string bytes(kBackupReadBytesMax, '\0');
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t read = ::pread(file.get(), bytes.data() + filled, bytes.size() - filled,
                                 static_cast<off_t>(offset + filled));
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) return system_error("cannot read " + path.value(), errno);
    if (read == 0) break;
    filled += static_cast<std::size_t>(read);
  }
  bytes.resize(filled);
  return bytes;
}

Result<void> Backups::make_folder() const {
  if (auto made = storage::make_private_folder(folder_); !made) return made.error();
  return {};
}

/// A read that is linearizable here: when it is justified, this node has applied everything that
/// was acknowledged before.
Result<void> Backups::wait_for_all_acknowledged() {
  const replica::ReadResult read = node_.read_point(options_.mode, options_.timeout);
  if (read.index) return {};
  if (stopping_) return Error{ErrorCode::stopped, "the node is stopping"};
  if (read.leader != raft::kNobody || read.overloaded) {
    return Error{ErrorCode::overloaded,
                 "the leader changed, or is overloaded: nothing was written"};
  }
  return Error{
      ErrorCode::unavailable,
      "no leader is known, so this node cannot know what a backup has to hold; with STALE it is "
      "what this node has"};
}

Result<void> Backups::check_space(std::uint64_t bytes) const {
  std::error_code error;
  const auto space = fs::space(folder_, error);
  // If the file system does not report it, the backup is tried.
  if (error || space.available >= bytes + kSpareBytes) return {};
  return Error{
      ErrorCode::io,
      fmt::format("the backup has {} bytes, and {} have to stay free, but the disk of {} has "
                  "{}: free some space on it, or move older backups away",
                  bytes, kSpareBytes, folder_, space.available)};
}

Result<void> Backups::check_number() const {
  std::size_t kept = 0;
  std::error_code error;
  for (auto at = fs::directory_iterator(folder_, error); !error && at != fs::directory_iterator();
       at.increment(error)) {
    ++kept;
  }
  if (kept < options_.backups_max) return {};
  return Error{ErrorCode::io,
               fmt::format("{} holds {} backups, and --backups-max is {}: move older ones away, or "
                           "raise --backups-max of this node",
                           folder_, kept, options_.backups_max)};
}

Result<BackupDone> Backups::write(const std::string& path, BackupWanted wanted) {
  if (auto made = make_folder(); !made) return made.error();
  if (auto fits = check_number(); !fits) return fits.error();
  if (!wanted.stale) {
    if (auto waited = wait_for_all_acknowledged(); !waited) return waited.error();
  }
  const auto snapshot = store_.take_snapshot();
  if (!snapshot) return snapshot.error();
  const auto info = kv::RocksdbStore::describe(*snapshot.value());
  if (!info) return info.error();
  if (info.value().last == raft::Index(0)) {
    return Error{ErrorCode::unavailable, "this node has applied nothing yet"};
  }
  // Not those of the store, which may have gone on.
  auto slots = kv::RocksdbStore::slots_of(*snapshot.value());
  if (!slots) return slots.error();
  if (const auto moving = kv::moving_slot(slots.value()); wanted.settled && moving) {
    return Error{ErrorCode::overloaded,
                 *moving + ": wait until the move ends, or cancel it, and back up then"};
  }
  BackupManifest manifest;
  manifest.cluster = options_.cluster;
  manifest.cluster_id = info.value().cluster_id;
  manifest.generation = random_generation();
  manifest.node = options_.id;
  manifest.term = node_.lease_view().look(node_.clock()).state.term;
  manifest.index = info.value().last;
  manifest.revision = info.value().revision;
  manifest.keys = info.value().keys;
  manifest.taken_s = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::seconds>(wall_now()).count());
  manifest.archive_bytes = snapshot.value()->size();

  if (auto fits = check_space(kManifestBytes + manifest.archive_bytes); !fits) return fits.error();
  const std::string fresh = path + std::string(kPartSuffix);
  const auto copied = copy(encode_manifest(manifest), *snapshot.value(), fresh, path);
  if (!copied) {
    std::error_code ignored;
    fs::remove(fresh, ignored);
    return copied.error();
  }
  return BackupDone{path, std::move(manifest), std::move(slots).value(), copied.value()};
}

Result<std::uint64_t> Backups::copy(const std::string& manifest, const replica::Snapshot& snapshot,
                                    const std::string& fresh, const std::string& path) {
  size_ = snapshot.size();
  const auto step = [this](std::uint64_t bytes) {
    written_ = bytes;
    return !stopping_.load();
  };
  return write_backup_file(manifest, snapshot, fresh, path, step);
}

}  // namespace leasehold::server
