#include <leasehold/base/coding.h>
#include <leasehold/kv/rocksdb/rocksdb_archive_env.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

namespace leasehold::kv {
namespace {

rocksdb::Status only_read() {
  return rocksdb::Status::NotSupported("an archive is only read");
}

}  // namespace

class ArchiveEnv::RandomFile final : public rocksdb::RandomAccessFile {
 public:
  RandomFile(ArchiveEnv& env, std::size_t file) : env_(env), file_(file) {}
  rocksdb::Status Read(std::uint64_t offset, std::size_t bytes, rocksdb::Slice* result,
                       char* scratch) const override {
    return env_.read(file_, offset, bytes, result, scratch);
  }

 private:
  ArchiveEnv& env_;
  const std::size_t file_;
};

class ArchiveEnv::SequentialFile final : public rocksdb::SequentialFile {
 public:
  SequentialFile(ArchiveEnv& env, std::size_t file) : env_(env), file_(file) {}
  rocksdb::Status Read(std::size_t bytes, rocksdb::Slice* result, char* scratch) override {
    const rocksdb::Status status = env_.read(file_, at_, bytes, result, scratch);
    if (status.ok()) at_ += result->size();
    return status;
  }
  rocksdb::Status Skip(std::uint64_t bytes) override {
    at_ += bytes;
    return rocksdb::Status::OK();
  }

 private:
  ArchiveEnv& env_;
  const std::size_t file_;
  std::uint64_t at_ = 0;
};

ArchiveEnv::ArchiveEnv(const replica::Snapshot& archive, ArchiveHead head)
    : EnvWrapper(rocksdb::Env::Default()), archive_(archive), head_(std::move(head)) {
  std::uint64_t at = encode_head(head_).size();
  for (const ArchiveFile& file : head_.files) {
    starts_.push_back(at);
    at += framed_bytes(file.size);
  }
}

std::optional<std::size_t> ArchiveEnv::find(const std::string& name) const {
  const std::string_view bare = std::string_view(name).substr(name.rfind('/') + 1);
  for (std::size_t i = 0; i < head_.files.size(); ++i) {
    if (head_.files[i].name == bare) return i;
  }
  return std::nullopt;
}

rocksdb::Status ArchiveEnv::load(std::size_t file, std::uint64_t block) {
  if (!block_.empty() && block_file_ == file && block_number_ == block) {
    return rocksdb::Status::OK();
  }
  block_.clear();
  const std::uint64_t at = block * kArchiveBlockBytes;
  const std::size_t bytes =
      std::min<std::uint64_t>(kArchiveBlockBytes, head_.files[file].size - at);
  std::string framed(bytes + kArchiveCheckBytes, '\0');
  const std::uint64_t start = starts_[file] + block * (kArchiveBlockBytes + kArchiveCheckBytes);
  if (auto read = archive_.read(start, framed.data(), framed.size()); !read) {
    return rocksdb::Status::IOError(read.error().message);
  }
  const std::uint32_t check = BigReader(std::string_view(framed).substr(bytes)).u32();
  framed.resize(bytes);
  if (check != block_check(file, at, framed)) {
    return rocksdb::Status::Corruption("a block of the archive is damaged");
  }
  block_ = std::move(framed);
  block_file_ = file;
  block_number_ = block;
  return rocksdb::Status::OK();
}

rocksdb::Status ArchiveEnv::read(std::size_t file, std::uint64_t offset, std::size_t bytes,
                                 rocksdb::Slice* result, char* scratch) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t size = head_.files[file].size;
  bytes = std::min<std::uint64_t>(bytes, size - std::min(size, offset));
  for (std::size_t filled = 0; filled < bytes;) {
    const std::uint64_t from = offset + filled;
    const rocksdb::Status status = load(file, from / kArchiveBlockBytes);
    if (!status.ok()) return status;
    const std::string_view rest = std::string_view(block_).substr(from % kArchiveBlockBytes);
    const std::size_t taken = std::min(bytes - filled, rest.size());
    std::memcpy(scratch + filled, rest.data(), taken);
    filled += taken;
  }
  *result = rocksdb::Slice(scratch, bytes);
  return rocksdb::Status::OK();
}

rocksdb::Status ArchiveEnv::FileExists(const std::string& name) {
  return find(name) ? rocksdb::Status::OK() : rocksdb::Status::NotFound();
}

rocksdb::Status ArchiveEnv::GetChildren(const std::string& /*folder*/,
                                        std::vector<std::string>* names) {
  names->clear();
  for (const ArchiveFile& file : head_.files) names->push_back(file.name);
  return rocksdb::Status::OK();
}

rocksdb::Status ArchiveEnv::GetFileSize(const std::string& name, std::uint64_t* size) {
  const auto file = find(name);
  if (!file) return rocksdb::Status::NotFound(name);
  *size = head_.files[*file].size;
  return rocksdb::Status::OK();
}

rocksdb::Status ArchiveEnv::NewSequentialFile(const std::string& name,
                                              std::unique_ptr<rocksdb::SequentialFile>* result,
                                              const rocksdb::EnvOptions& /*options*/) {
  const auto file = find(name);
  if (!file) return rocksdb::Status::NotFound(name);
  *result = std::make_unique<SequentialFile>(*this, *file);
  return rocksdb::Status::OK();
}

rocksdb::Status ArchiveEnv::NewRandomAccessFile(const std::string& name,
                                                std::unique_ptr<rocksdb::RandomAccessFile>* result,
                                                const rocksdb::EnvOptions& /*options*/) {
  const auto file = find(name);
  if (!file) return rocksdb::Status::NotFound(name);
  *result = std::make_unique<RandomFile>(*this, *file);
  return rocksdb::Status::OK();
}

rocksdb::Status ArchiveEnv::NewWritableFile(const std::string& /*name*/,
                                            std::unique_ptr<rocksdb::WritableFile>* /*result*/,
                                            const rocksdb::EnvOptions& /*options*/) {
  return only_read();
}

rocksdb::Status ArchiveEnv::CreateDir(const std::string& /*name*/) {
  return only_read();
}

rocksdb::Status ArchiveEnv::CreateDirIfMissing(const std::string& /*name*/) {
  return only_read();
}

rocksdb::Status ArchiveEnv::DeleteFile(const std::string& /*name*/) {
  return only_read();
}

rocksdb::Status ArchiveEnv::RenameFile(const std::string& /*from*/, const std::string& /*to*/) {
  return only_read();
}

}  // namespace leasehold::kv
