// Texts that people and scripts write or keep: settings, addresses, durations, histories, traces,
// rules of users, names in certificates; and replies of any server to our client. The first byte
// chooses.
#include <leasehold/check/history_file.h>
#include <leasehold/client/resp_client.h>
#include <leasehold/net/handshake.h>
#include <leasehold/server/commands/command_table.h>
#include <leasehold/server/front/duration.h>
#include <leasehold/server/settings.h>
#include <leasehold/server/users/password.h>
#include <leasehold/server/users/rights.h>
#include <leasehold/story/trace_file.h>
#include <leasehold/tests/fuzz/fuzz.h>
#include <leasehold/tests/fuzz/input.h>
#include <leasehold/tls/name.h>

#include <sys/mman.h>
#include <unistd.h>

#include <string>

namespace leasehold::fuzz {
namespace {

/// A file in memory, over and over again.
class MemoryFile {
 public:
  MemoryFile() : file_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    LEASEHOLD_ASSERT(file_ >= 0);
    path_ = "/proc/self/fd/" + std::to_string(file_);
  }
  const std::string& path_of(std::string_view bytes) {
    LEASEHOLD_ASSERT(::ftruncate(file_, 0) == 0);
    const auto written = ::pwrite(file_, bytes.data(), bytes.size(), 0);
    LEASEHOLD_ASSERT(written == static_cast<ssize_t>(bytes.size()));
    return path_;
  }

 private:
  int file_;
  std::string path_;
};

void take_settings(std::string_view bytes) {
  static MemoryFile file;
  const auto texts = server::read_settings_file(file.path_of(bytes));
  if (accepted(texts)) static_cast<void>(accepted(server::make_settings(texts.value())));
}

void take_history(std::string_view bytes) {
  check::History history;
  check::HistoryReader reader(history);
  std::size_t lines = 0;
  while (!bytes.empty()) {
    const std::string_view line = bytes.substr(0, bytes.find('\n'));
    bytes.remove_prefix(std::min(bytes.size(), line.size() + 1));
    if (!accepted(reader.take(line))) return;
    LEASEHOLD_ASSERT(reader.lines() == ++lines);
  }
}

void take_trace(std::string_view bytes) {
  const std::string text(bytes);
  auto record = story::decode_record(text);
  if (accepted(record)) {
    const auto again = story::decode_record(story::encode_record(record.value()));
    // Rates in a record other than a clock's are read, but not written.
    if (record.value().kind != story::Kind::clock) {
      record.value().holder_ppm = record.value().promise_ppm = 0;
    }
    LEASEHOLD_ASSERT(again.ok() && again.value() == record.value());
    // A file is more than one record, or the one that every file begins with.
    if (record.value().kind != story::Kind::run) return;
  }
  static_cast<void>(accepted(story::decode_trace("trace", text)));
}

void take_words(std::string_view bytes) {
  const auto duration = server::parse_duration(bytes);
  if (accepted(duration)) {
    const auto again = server::parse_duration(server::format_duration(duration.value()));
    LEASEHOLD_ASSERT(again.ok() && again.value() == duration.value());
  }
  static_cast<void>(accepted(net::parse_address(bytes)));
  static_cast<void>(accepted(server::parse_peers(bytes)));
}

/// As slow as nothing.
class CheapPasswords final : public server::PasswordWork {
 public:
  std::string digest(std::string_view password) override { return server::sha256_hex(password); }
  std::string hash(std::string_view digest) override {
    return "scrypt$14$8$1$" + std::string(32, '0') + "$" + std::string(digest);
  }
  bool matches(std::string_view stored, std::string_view digest) override {
    return stored.substr(stored.size() - digest.size()) == digest;
  }
};

/// Rules, one a line, and then a key: what is accepted is read back, and permits the same.
void take_rules(std::string_view bytes) {
  CheapPasswords work;
  server::UserRules rules;
  std::string_view line;
  while (!bytes.empty()) {
    line = bytes.substr(0, bytes.find('\n'));
    bytes.remove_prefix(std::min(bytes.size(), line.size() + 1));
    const server::UserRules before = rules;
    const auto problem = server::apply_rule(rules, line, server::command_table(), work);
    LEASEHOLD_ASSERT(problem.empty() || rules == before);
    LEASEHOLD_ASSERT(server::shown_rule(line).size() <= line.size() + 10);
  }
  server::UserRules again;
  LEASEHOLD_ASSERT(server::parse_rules(rules.text(), again) && again.text() == rules.text());
  const server::Rights had("user", rules, 1, 1, server::command_table());
  const server::Rights has("user", again, 1, 1, server::command_table());
  LEASEHOLD_ASSERT(had.unrestricted() == has.unrestricted());
  for (std::size_t i = 0; i < server::command_table().size(); ++i) {
    LEASEHOLD_ASSERT(had.may_run(i) == has.may_run(i));
  }
  LEASEHOLD_ASSERT(had.may_use(line, server::kReads) == has.may_use(line, server::kReads));
  // A pattern that covers a prefix permits the prefix itself, and what follows it.
  if (had.may_use_prefix(line, server::kWrites)) {
    LEASEHOLD_ASSERT(had.may_use(line, server::kWrites));
    LEASEHOLD_ASSERT(had.may_use(std::string(line) + "x", server::kWrites));
  }
}

/// The text of a record, from a disk or a snapshot.
void take_record(std::string_view bytes) {
  server::UserRules rules;
  if (!server::parse_rules(bytes, rules)) return;
  server::UserRules again;
  LEASEHOLD_ASSERT(server::parse_rules(rules.text(), again) && again.text() == rules.text());
  static_cast<void>(server::Rights("user", rules, 1, 1, server::command_table()));
}

void take_name(std::string_view bytes) {
  const auto name = tls::parse_uri(bytes);
  if (!accepted(name)) return;
  LEASEHOLD_ASSERT(tls::validate_name(name.value()).ok());
  LEASEHOLD_ASSERT(tls::to_uri(name.value()) == bytes);
}

void take_reply(std::string_view bytes) {
  client::RespValue value;
  const auto length = client::parse_reply(bytes, value);
  if (!accepted(length)) return;
  LEASEHOLD_ASSERT(length.value() <= bytes.size());
  if (length.value() == 0) return;
  // A complete reply stays the same with any bytes after it, and no shorter part is complete.
  client::RespValue part;
  LEASEHOLD_ASSERT(client::parse_reply(bytes.substr(0, length.value()), part).value() ==
                   length.value());
  const auto early = client::parse_reply(bytes.substr(0, length.value() - 1), part);
  LEASEHOLD_ASSERT(early.ok() && early.value() == 0);
}

}  // namespace

void take(std::string_view input) {
  Input in(input);
  const unsigned chosen = in.byte();
  if (chosen >= 192) return take_rules(in.rest());
  if (chosen >= 128) return take_record(in.rest());
  switch (chosen % 8) {
    case 0:
    case 1: return take_settings(in.rest());
    case 2: return take_history(in.rest());
    case 3: return take_trace(in.rest());
    case 4: return take_name(in.rest());
    case 5:
    case 6: return take_words(in.rest());
    default: return take_reply(in.rest());
  }
}

}  // namespace leasehold::fuzz
