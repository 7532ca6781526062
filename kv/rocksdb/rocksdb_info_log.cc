#include <leasehold/kv/rocksdb/rocksdb_info_log.h>

#include <fmt/format.h>
#include <rocksdb/env.h>

#include <array>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <utility>

namespace leasehold::kv {
namespace {

/// Longer ones are cut.
constexpr std::size_t kLineBytesMax = 2048;

class InfoLog final : public rocksdb::Logger {
 public:
  InfoLog(std::string folder, rocksdb::Env* env);

  using rocksdb::Logger::Logv;
  void Logv(const char* format, std::va_list arguments) override;
  /// The list of all options at each start, which is in the file OPTIONS too: left out.
  void LogHeader(const char* /*format*/, std::va_list /*arguments*/) override {}

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  void write(const std::string& line);

  rocksdb::Env* const env_;
  const std::string path_;
  std::mutex mutex_;
  std::unique_ptr<std::FILE, Close> file_;  ///< guarded by mutex_
};

InfoLog::InfoLog(std::string folder, rocksdb::Env* env)
    : rocksdb::Logger(rocksdb::InfoLogLevel::WARN_LEVEL),
      env_(env),
      path_(std::move(folder) + "/LOG") {}

void InfoLog::Logv(const char* format, std::va_list arguments) {
  std::array<char, kLineBytesMax> text{};
  std::vsnprintf(text.data(), text.size(), format, arguments);
  std::int64_t now = 0;
  static_cast<void>(env_->GetCurrentTime(&now));
  std::string line =
      fmt::format("{} {}", env_->TimeToString(static_cast<std::uint64_t>(now)), text.data());
  if (line.back() != '\n') line.push_back('\n');
  const std::lock_guard<std::mutex> lock(mutex_);
  write(line);
}

void InfoLog::write(const std::string& line) {
  if (!file_) {
    file_.reset(std::fopen(path_.c_str(), "ae"));
    if (!file_) return;
    std::setvbuf(file_.get(), nullptr, _IONBF, 0);  // what the disk refuses is not tried again
  }
  std::fwrite(line.data(), 1, line.size(), file_.get());
  std::clearerr(file_.get());
  if (std::ftell(file_.get()) < static_cast<long>(kInfoLogBytes)) return;
  file_.reset();
  std::rename(path_.c_str(), (path_ + ".old").c_str());
}

}  // namespace

std::shared_ptr<rocksdb::Logger> make_info_log(const std::string& folder, rocksdb::Env* env) {
  return std::make_shared<InfoLog>(folder, env);
}

}  // namespace leasehold::kv
