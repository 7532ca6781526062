// The blocks of an arriving snapshot that lie in files of this machine.

#include <leasehold/base/assert.h>
#include <leasehold/node/file_snapshot.h>
#include <leasehold/node/node_file_head.h>
#include <leasehold/storage/descriptor.h>
#include <leasehold/tls/digest.h>

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace leasehold::node {
namespace {

Error cannot_use(const std::string& path, int code) {
  return {ErrorCode::io,
          fmt::format("cannot read {}: {}", path, std::generic_category().message(code))};
}

/// Fewer than `bytes` at the end of the file alone.
Result<std::size_t> read_block(int file, const std::string& path, std::uint64_t offset, char* to,
                               std::size_t bytes) {
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t got = ::pread(file, to + done, bytes - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cannot_use(path, errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

/// A regular file: one of another kind may keep its reader waiting.
Result<storage::Descriptor> open_regular(const std::string& path) {
  storage::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat state {};
  if (file.get() < 0 || ::fstat(file.get(), &state) != 0) return cannot_use(path, errno);
  if (!S_ISREG(state.st_mode)) return cannot_use(path, EINVAL);
  return file;
}

/// A file of the snapshot, and one here that may be the same.
struct HeldFile {
  FileInHead source;
  std::uint64_t begin = 0;  ///< in the snapshot
  std::string path;
};

class FilesHere final : public replica::HeldBlocks {
 public:
  explicit FilesHere(std::vector<HeldFile> files) : files_(std::move(files)) {}

  std::optional<Block> next(std::uint64_t from) override {
    const auto file = std::partition_point(
        files_.begin(), files_.end(),
        [from](const HeldFile& one) { return one.begin + one.source.size <= from; });
    if (file == files_.end()) return std::nullopt;
    const std::uint64_t within = from <= file->begin ? 0 : from - file->begin;
    const std::uint64_t at = within - within % kDigestBlockBytes;
    const std::uint64_t bytes = std::min<std::uint64_t>(kDigestBlockBytes, file->source.size - at);
    return Block{file->begin + at, static_cast<std::size_t>(bytes),
                 std::string(digest_at(file->source, at))};
  }

  Result<void> read(const Block& block, char* to) override {
    const auto file = std::partition_point(
        files_.begin(), files_.end(),
        [&block](const HeldFile& one) { return one.begin + one.source.size <= block.offset; });
    LEASEHOLD_ASSERT(file != files_.end());
    // One at a time is open. The name may be another file's by now: the digests say what is read.
    if (!open_ || open_path_ != file->path) {
      open_.reset();
      Result<storage::Descriptor> opened = open_regular(file->path);
      if (!opened.ok()) return opened.error();
      open_.emplace(std::move(opened).value());
      open_path_ = file->path;
    }
    const auto got =
        read_block(open_->get(), file->path, block.offset - file->begin, to, block.size);
    if (!got.ok()) return got.error();
    if (got.value() < block.size) return Error{ErrorCode::io, file->path + " is too short"};
    return {};
  }

 private:
  const std::vector<HeldFile> files_;  ///< in their order, none of them empty
  std::optional<storage::Descriptor> open_;
  std::string open_path_;
};

}  // namespace

Result<std::string> digests_of_file(const std::string& path) {
  const Result<storage::Descriptor> file = open_regular(path);
  if (!file.ok()) return file.error();
  std::string digests;
  std::string block(kDigestBlockBytes, '\0');
  for (std::uint64_t at = 0;; at += block.size()) {
    const auto got = read_block(file.value().get(), path, at, block.data(), block.size());
    if (!got.ok()) return got.error();
    if (got.value() > 0) digests += tls::sha256(std::string_view(block).substr(0, got.value()));
    if (got.value() < block.size()) return digests;
  }
}

replica::HeldAnswer held_files(const replica::Snapshot& arriving, std::uint64_t arrived,
                               const PartLookup& where) {
  std::string front(static_cast<std::size_t>(std::min<std::uint64_t>(arrived, 64)), '\0');
  if (!arriving.read(0, front.data(), front.size()).ok()) return {};
  const Result<std::uint64_t> bytes = file_head_bytes(front, arriving.size());
  // One that is not valid is refused when it is unpacked.
  if (!bytes.ok()) return {};
  if (bytes.value() > arrived) return {bytes.value(), nullptr};
  Result<FileHead> head = read_file_head(arriving);
  if (!head.ok()) return {};
  std::vector<HeldFile> files;
  std::uint64_t begin = head.value().files_at;
  for (FileInHead& file : head.value().files) {
    const std::uint64_t size = file.size;
    std::string path = file.digests.empty() ? "" : where(file.name, size);
    if (!path.empty()) files.push_back({std::move(file), begin, std::move(path)});
    begin += size;
  }
  if (files.empty()) return {};
  return {0, std::make_unique<FilesHere>(std::move(files))};
}

}  // namespace leasehold::node
