// LIVE is text, so that a person can read it:
//
//   leasehold-state 1
//   live 3                 or, while the first database is being made: making
//   check 8 hex digits     CRC32C of everything above
#include <leasehold/base/assert.h>
#include <leasehold/kv/rocksdb/rocksdb_folder.h>
#include <leasehold/kv/rocksdb/rocksdb_record.h>
#include <leasehold/wire/crc32c.h>

#include <fmt/format.h>
#include <rocksdb/env.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <vector>

namespace leasehold::kv {
namespace {

constexpr unsigned kFolderFormat = 1;
constexpr std::string_view kHeading = "leasehold-state ";
constexpr std::string_view kLiveName = "LIVE";
constexpr std::string_view kNewLiveName = "LIVE.new";
constexpr std::string_view kDatabase = "db-";
constexpr std::string_view kSnapshot = "snapshot-";

bool begins(std::string_view text, std::string_view with) {
  return text.substr(0, with.size()) == with;
}

/// The last line of every format, after `lines`.
std::string check_line(std::string_view lines) {
  std::uint32_t check = wire::crc32c(lines);
  std::string hex(8, '0');
  for (std::size_t i = hex.size(); i-- > 0; check >>= 4U) hex[i] = "0123456789abcdef"[check & 0xfU];
  return fmt::format("check {}\n", hex);
}

bool check_holds(std::string_view text) {
  const std::size_t size = check_line({}).size();
  return text.size() > size &&
         text.substr(text.size() - size) == check_line(text.substr(0, text.size() - size));
}

/// 0: making.
std::string encode_live(std::uint64_t live) {
  std::string out = fmt::format("{}{}\n", kHeading, kFolderFormat);
  out += live == 0 ? std::string("making\n") : fmt::format("live {}\n", live);
  return out + check_line(out);
}

std::uint64_t number_at(std::string_view text) {
  std::uint64_t number = 0;
  static_cast<void>(std::from_chars(text.data(), text.data() + text.size(), number));
  return number;
}

Result<std::uint64_t> decode_live(std::string_view text) {
  const Error damaged{ErrorCode::corrupted, "the file LIVE is damaged"};
  // The format number counts only if the check is right: otherwise the file is damaged.
  if (!begins(text, kHeading) || !check_holds(text)) return damaged;
  const std::uint64_t format = number_at(text.substr(kHeading.size()));
  if (format != kFolderFormat) {
    return Error{ErrorCode::unsupported_format,
                 fmt::format("the folder has format {}, this build knows {}: use a newer build",
                             format, kFolderFormat)};
  }
  const std::size_t line = text.find('\n');
  std::uint64_t live = 0;
  if (line != std::string_view::npos && begins(text.substr(line + 1), "live ")) {
    live = number_at(text.substr(line + 6));
  }
  // Whatever the lines above let through, only the one true spelling passes here.
  if (encode_live(live) != text) return damaged;
  return live;
}

/// Makes `dir` and its parents, durably, and lets only its owner enter: what is durable inside must
/// not hang on a name that is not.
Result<void> make_folders(const std::string& dir, rocksdb::Env* env) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path path = fs::absolute(dir, error).lexically_normal();
  std::vector<fs::path> parents;
  for (fs::path at = path; !error && at.has_relative_path() && !fs::exists(at, error);
       at = at.parent_path()) {
    parents.push_back(at.parent_path());
  }
  if (!error) fs::create_directories(path, error);
  // The files in it get the mode that the process's umask leaves; nobody else gets as far as them.
  if (!error && fs::is_directory(path, error)) fs::permissions(path, fs::perms::owner_all, error);
  if (error || !fs::is_directory(path, error)) {
    return Error{
        ErrorCode::io,
        fmt::format("cannot use the folder: {}: check that its parent exists and is writable, and "
                    "that it belongs to the user of this process",
                    error ? error.message() : std::string("it is a file"))};
  }
  for (const fs::path& parent : parents) {
    if (auto synced = sync_folder(env, parent.string()); !synced) return synced;
  }
  return {};
}

}  // namespace

Result<void> sync_folder(rocksdb::Env* env, const std::string& path) {
  std::unique_ptr<rocksdb::Directory> folder;
  rocksdb::Status status = env->NewDirectory(path, &folder);
  if (status.ok()) status = folder->Fsync();
  if (!status.ok())
    return status_error(fmt::format("cannot make the folder {} durable", path), status);
  return {};
}

Result<std::unique_ptr<Folder>> Folder::open(const std::string& dir, rocksdb::Env* env) {
  if (auto made = make_folders(dir, env); !made) return made.error();
  auto folder = std::unique_ptr<Folder>(new Folder(dir, env));
  if (auto locked = folder->lock(); !locked) return locked.error();
  if (auto loaded = folder->load(); !loaded) return loaded.error();
  return folder;
}

Folder::~Folder() {
  if (lock_ != nullptr) static_cast<void>(env_->UnlockFile(lock_));
}

Result<void> Folder::lock() {
  const rocksdb::Status status = env_->LockFile(dir_ + "/LOCK", &lock_);
  if (!status.ok()) return status_error("cannot lock it", status);
  return {};
}

Result<void> Folder::load() {
  std::vector<std::string> names;
  rocksdb::Status status = env_->GetChildren(dir_, &names);
  if (!status.ok()) return status_error("cannot list it", status);
  const auto has = [&names](std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (!has(kLiveName)) {
    if (has("CURRENT")) {
      return Error{
          ErrorCode::unsupported_format,
          fmt::format("the folder has format 0, this build knows {}: remove it; the store is made "
                      "again from the log",
                      kFolderFormat)};
    }
    for (const std::string& name : names) {
      if (name == "." || name == ".." || name == "LOCK" || name == kNewLiveName) continue;
      const bool ours = begins(name, kDatabase) || begins(name, kSnapshot);
      return Error{ErrorCode::corrupted, ours ? "the file LIVE is missing"
                                              : "the folder is not empty and holds no database"};
    }
    return store(encode_live(0));
  }
  std::string content;
  status = rocksdb::ReadFileToString(env_, fmt::format("{}/{}", dir_, kLiveName), &content);
  if (!status.ok()) return status_error("cannot read the file LIVE", status);
  const auto live = decode_live(content);
  if (!live) return live.error();
  live_ = live.value();
  newest_ = live_;
  remove_leftovers();
  return {};
}

void Folder::remove_leftovers() {
  std::vector<std::string> names;
  if (!env_->GetChildren(dir_, &names).ok()) return;
  for (const std::string& name : names) {
    if (name == kNewLiveName) static_cast<void>(env_->DeleteFile(fmt::format("{}/{}", dir_, name)));
    if (!begins(name, kDatabase) && !begins(name, kSnapshot)) continue;
    const std::string path = fmt::format("{}/{}", dir_, name);
    if (live_ != 0 && path == database(live_)) continue;
    remove(env_, path);
  }
}

void Folder::remove(rocksdb::Env* env, const std::string& path) {
  std::vector<std::string> names;
  if (!env->GetChildren(path, &names).ok()) return;
  for (const std::string& name : names) {
    if (name == "." || name == "..") continue;
    static_cast<void>(env->DeleteFile(fmt::format("{}/{}", path, name)));
  }
  static_cast<void>(env->DeleteDir(path));
}

std::string Folder::database(std::uint64_t number) const {
  return fmt::format("{}/{}{}", dir_, kDatabase, number);
}

std::string Folder::live() const {
  LEASEHOLD_ASSERT(has_live());
  return database(live_);
}

std::string Folder::new_database() {
  std::string path;
  do {
    path = database(++newest_);
  } while (env_->FileExists(path).ok());
  return path;
}

std::string Folder::new_snapshot() {
  std::string path;
  do {
    path = fmt::format("{}/{}{}", dir_, kSnapshot, ++snapshots_);
  } while (env_->FileExists(path).ok());
  return path;
}

Result<void> Folder::make_live() {
  LEASEHOLD_ASSERT(newest_ > live_);
  // The database's name first: LIVE must never name what is not there.
  if (auto synced = sync_folder(env_, dir_); !synced) return synced;
  if (auto stored = store(encode_live(newest_)); !stored) return stored;
  live_ = newest_;
  return {};
}

/// Written whole under another name, then renamed: it is never seen half made.
Result<void> Folder::store(std::string_view content) {
  const std::string path = fmt::format("{}/{}", dir_, kLiveName);
  const std::string fresh = fmt::format("{}/{}", dir_, kNewLiveName);
  std::unique_ptr<rocksdb::WritableFile> file;
  rocksdb::Status status = env_->NewWritableFile(fresh, &file, rocksdb::EnvOptions());
  if (status.ok()) status = file->Append({content.data(), content.size()});
  if (status.ok()) status = file->Sync();
  if (status.ok()) status = file->Close();
  if (status.ok()) status = env_->RenameFile(fresh, path);
  if (!status.ok()) return status_error("cannot write the file LIVE", status);
  return sync_folder(env_, dir_);
}

}  // namespace leasehold::kv
