#include <leasehold/server/log_text.h>
#include <leasehold/server/node_log.h>
#include <leasehold/server/terminal.h>

#include <fmt/format.h>
#include <spdlog/async.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include <cstddef>
#include <ctime>
#include <memory>
#include <string>
#include <utility>

namespace leasehold::server {
namespace {

constexpr std::size_t kLogLinesMax = 8192;

/// The flag %* of the log's pattern: the message as printable() has it, or as a string of JSON.
class MessageText final : public spdlog::custom_flag_formatter {
 public:
  explicit MessageText(bool json) : json_(json) {}
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    std::string text(message.payload.data(), message.payload.size());
    // What is no UTF-8 becomes U+FFFD.
    text = json_ ? nlohmann::json(std::move(text))
                       .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
                 : printable(text);
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<MessageText>(json_);
  }

 private:
  const bool json_;
};

spdlog::level::level_enum level_of(const std::string& level) {
  return spdlog::level::from_str(level == "warn" ? "warning" : level);
}

}  // namespace

void start_log(const ServeSettings& settings) {
  // The node's own thread logs, too.
  spdlog::init_thread_pool(kLogLinesMax, 1);
  const bool json = settings.log_format == "json";
  const bool color = !json && use_color(Color::automatic, STDERR_FILENO);
  auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>(
      color ? spdlog::color_mode::always : spdlog::color_mode::never);
  auto logger =
      std::make_shared<spdlog::async_logger>("leasehold", std::move(sink), spdlog::thread_pool(),
                                             spdlog::async_overflow_policy::overrun_oldest);
  logger->set_level(level_of(settings.log_level));
  auto formatter = std::make_unique<spdlog::pattern_formatter>(
      json ? spdlog::pattern_time_type::utc : spdlog::pattern_time_type::local);
  const std::uint64_t node = settings.node.id.value();
  formatter->add_flag<MessageText>('*', json).set_pattern(
      json ? fmt::format(
                 R"({{"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l","node":{},"message":%*}})", node)
           : fmt::format("%Y-%m-%d %H:%M:%S.%e %^%-7l%$ node {}: %*", node));
  logger->set_formatter(std::move(formatter));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

void set_log_level(const std::string& level) {
  spdlog::default_logger()->set_level(level_of(level));
}

}  // namespace leasehold::server
