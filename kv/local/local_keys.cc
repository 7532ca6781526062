#include <leasehold/base/assert.h>
#include <leasehold/kv/local/local_keys.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

namespace leasehold::kv {
namespace {

/// Rows of one part of a listing, and revisions of one read of the history.
constexpr std::size_t kRowsAtOnce = 1000;
constexpr std::size_t kRevisionsAtOnce = 256;
/// Longest single wait: the waits of the standard library do not count the time that the machine
/// was asleep.
constexpr lease::Duration kLook = std::chrono::milliseconds(200);

/// Rings when the store has news.
class Bell {
 public:
  explicit Bell(const kv::EventHistory& events)
      : events_(events), listener_(events.listen([this] {
          const std::lock_guard lock(mutex_);
          rang_ = true;
          rung_.notify_all();
        })) {}
  ~Bell() { events_.forget(listener_); }
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;

  /// What rang before and was not waited for counts.
  void wait(lease::Duration timeout) {
    std::unique_lock lock(mutex_);
    rung_.wait_for(lock, timeout, [this] { return rang_; });
    rang_ = false;
  }

 private:
  const kv::EventHistory& events_;
  std::mutex mutex_;
  std::condition_variable rung_;
  bool rang_ = false;
  const kv::EventHistory::Listener listener_;
};

bool touches(const kv::Revision& revision, const client::KeyService::Interest& interest) {
  return std::any_of(revision.events.begin(), revision.events.end(), [&](const kv::Event& event) {
    return interest.prefix ? event.key.substr(0, interest.key.size()) == interest.key
                           : event.key == interest.key;
  });
}

client::KeyService::Row row_of(const kv::Row& row) {
  return {row.key, std::string(row.value.bytes.view()), row.value.create_revision, row.value.lease,
          row.value.mod_revision};
}

}  // namespace

Result<LocalKeys::Listing> LocalKeys::list(const std::string& prefix, lease::Duration timeout) {
  if (auto readable = group_.wait_readable(timeout); !readable) return readable.error();
  Listing listing;
  std::optional<std::string> after;
  for (;;) {
    const auto part =
        group_.store.rows(prefix, after ? std::optional<std::string_view>(*after) : std::nullopt,
                          kRowsAtOnce, kv::Load::whole);
    if (!part) return part.error();
    if (!after) listing.revision = part.value().revision;
    for (const kv::Row& row : part.value().rows) listing.rows.push_back(row_of(row));
    if (!part.value().more) return listing;
    after = listing.rows.back().key;
  }
}

Result<std::optional<LocalKeys::Row>> LocalKeys::find(const std::string& key,
                                                      lease::Duration timeout) {
  if (auto readable = group_.wait_readable(timeout); !readable) return readable.error();
  // The key itself is the first of those that begin with it.
  const auto part = group_.store.rows(key, std::nullopt, 1, kv::Load::whole);
  if (!part) return part.error();
  const auto& rows = part.value().rows;
  if (rows.empty() || rows[0].key != key) return std::optional<Row>();
  return std::optional<Row>(row_of(rows[0]));
}

Result<bool> LocalKeys::replace(const GuardedWrite& write, lease::Duration timeout) {
  kv::Set set;
  set.key = write.key;
  set.value = write.value;
  set.token = write.token;
  const auto reply =
      group_.execute(kv::Transaction{{{write.key, write.mod_revision}}, {set}}, timeout);
  if (!reply) return reply.error();
  const auto* const results = std::get_if<kv::ArrayReply>(&reply.value());
  if (results == nullptr) return false;
  LEASEHOLD_ASSERT(results->items.size() == 1);
  const auto result = kv::decode_reply(results->items[0]);
  if (!result) return result.error();
  const auto* const refused = std::get_if<kv::ErrorReply>(&result.value());
  if (refused == nullptr) return true;
  return Error{
      refused->kind == kv::ErrorKind::fenced ? ErrorCode::in_use : ErrorCode::invalid_argument,
      refused->text};
}

Result<void> LocalKeys::put(const std::string& key, const std::string& value, grant::LeaseId lease,
                            lease::Duration timeout) {
  kv::Set set;
  set.key = key;
  set.value = value;
  set.lease = lease;
  const auto reply = group_.execute(set, timeout);
  if (!reply) return reply.error();
  return {};
}

void LocalKeys::wait_change(const Interest& interest, std::uint64_t revision,
                            lease::Duration timeout) {
  const lease::Clock& clock = group_.node.clock();
  const kv::EventHistory& events = group_.store.events();
  const lease::HolderInstant until = clock.holder_now() + timeout;
  Bell bell(events);
  std::uint64_t next = revision + 1;
  for (;;) {
    const kv::EventHistory::Batch batch = events.read(next, kRevisionsAtOnce);
    if (batch.lost) return;
    for (const kv::Revision& each : batch.revisions) {
      if (touches(each, interest)) return;
      next = each.number + 1;
    }
    const lease::HolderInstant now = clock.holder_now();
    if (now >= until) return;
    if (batch.revisions.empty()) bell.wait(std::min(until - now, kLook));
  }
}

}  // namespace leasehold::kv
