#include <leasehold/storage/memory_folder.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leasehold::storage {

struct MemoryFolder::Files {
  using Content = std::shared_ptr<std::string>;

  explicit Files(std::uint64_t most) : bytes_max(most) {}

  std::mutex mutex;
  const std::uint64_t bytes_max;
  std::map<std::string, Content> by_name;
  std::uint64_t bytes = 0;  ///< of those with a name
  bool open = false;
};

class MemoryFolder::File final : public DiskFile {
 public:
  File(std::shared_ptr<Files> files, Files::Content content)
      : files_(std::move(files)), content_(std::move(content)), size_(content_->size()) {}

  std::uint64_t size() const override { return size_; }
  Result<void> read(std::uint64_t offset, char* to, std::size_t bytes) const override {
    const std::lock_guard lock(files_->mutex);
    if (offset > size_ || bytes > size_ - offset) return beyond("read");
    content_->copy(to, bytes, offset);
    return {};
  }
  Result<void> write(std::uint64_t offset, std::string_view bytes) override {
    const std::lock_guard lock(files_->mutex);
    if (offset > size_ || bytes.size() > size_ - offset) return beyond("write");
    std::copy(bytes.begin(), bytes.end(),
              content_->begin() + static_cast<std::string::difference_type>(offset));
    return {};
  }
  Result<void> sync() override { return {}; }

 private:
  static Error beyond(const std::string& what) {
    return {ErrorCode::io, "a " + what + " beyond the end of a file in memory"};
  }

  std::shared_ptr<Files> files_;
  Files::Content content_;
  const std::uint64_t size_;
};

class MemoryFolder::Open final : public Disk {
 public:
  explicit Open(std::shared_ptr<Files> files) : files_(std::move(files)) {}
  ~Open() override {
    const std::lock_guard lock(files_->mutex);
    files_->open = false;
  }
  Open(const Open&) = delete;
  Open& operator=(const Open&) = delete;

  const std::string& path() const override { return path_; }
  Result<std::vector<std::string>> list() const override {
    const std::lock_guard lock(files_->mutex);
    std::vector<std::string> names;
    for (const auto& file : files_->by_name) names.push_back(file.first);
    return names;
  }
  Result<std::optional<std::string>> load(const std::string& name,
                                          std::size_t bytes_max) const override {
    const std::lock_guard lock(files_->mutex);
    const auto found = files_->by_name.find(name);
    if (found == files_->by_name.end()) return std::optional<std::string>();
    return std::optional<std::string>(found->second->substr(0, bytes_max));
  }
  Result<std::shared_ptr<DiskFile>> open(const std::string& name) const override {
    const std::lock_guard lock(files_->mutex);
    const auto found = files_->by_name.find(name);
    if (found == files_->by_name.end()) {
      return Error{ErrorCode::io, "there is no file " + name + " in " + path_};
    }
    return std::shared_ptr<DiskFile>(std::make_shared<File>(files_, found->second));
  }
  Result<std::shared_ptr<DiskFile>> create(const std::string& name, std::string_view head,
                                           std::uint64_t size) override {
    const std::lock_guard lock(files_->mutex);
    const auto before = files_->by_name.find(name);
    const std::uint64_t given_back = before == files_->by_name.end() ? 0 : before->second->size();
    if (size > files_->bytes_max - (files_->bytes - given_back)) {
      return Error{kNoSpace, "cannot make " + name + " in " + path_ + ": it is full"};
    }
    auto content = std::make_shared<std::string>(head);
    content->resize(size, '\0');
    files_->bytes += size - given_back;
    files_->by_name[name] = content;
    return std::shared_ptr<DiskFile>(std::make_shared<File>(files_, std::move(content)));
  }
  Result<void> remove(const std::string& name) override {
    const std::lock_guard lock(files_->mutex);
    const auto found = files_->by_name.find(name);
    if (found == files_->by_name.end()) return {};
    files_->bytes -= found->second->size();
    files_->by_name.erase(found);
    return {};
  }
  Result<std::uint64_t> free_bytes() const override {
    const std::lock_guard lock(files_->mutex);
    return files_->bytes_max - files_->bytes;
  }

 private:
  std::shared_ptr<Files> files_;
  const std::string path_ = "the folder in memory";
};

MemoryFolder::MemoryFolder(std::uint64_t bytes_max) : files_(std::make_shared<Files>(bytes_max)) {}
MemoryFolder::~MemoryFolder() = default;

Result<std::unique_ptr<Disk>> MemoryFolder::open() {
  {
    const std::lock_guard lock(files_->mutex);
    if (std::exchange(files_->open, true)) {
      return Error{ErrorCode::in_use, "this folder in memory is open: a node uses it"};
    }
  }
  return std::unique_ptr<Disk>(std::make_unique<Open>(files_));
}

std::uint64_t MemoryFolder::bytes() const {
  const std::lock_guard lock(files_->mutex);
  return files_->bytes;
}

}  // namespace leasehold::storage
