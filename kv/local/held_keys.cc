#include <leasehold/kv/local/held_keys.h>

#include <utility>

namespace leasehold::kv {
namespace {

/// The lease is of another group, and its time has gone on there.
bool is_the_same(const Value& held, const Value& wanted) {
  constexpr grant::LeaseId kNone(0);
  return held.mod_revision == wanted.mod_revision &&
         held.create_revision == wanted.create_revision && held.version == wanted.version &&
         (held.lease == kNone) == (wanted.lease == kNone) &&
         held.bytes.view() == wanted.bytes.view();
}

}  // namespace

Result<const Row*> HeldKeys::next(const std::optional<std::string>& reached) {
  while (at_ == rows_.size() && !read_all_) {
    auto some = store_.slot_rows(slots_, after_, Load::whole);
    if (!some) return some.error();
    rows_ = std::move(some.value().rows);
    at_ = 0;
    after_ = std::move(some.value().reached);
    read_all_ = !after_;
  }
  const bool none = at_ == rows_.size() || (reached && rows_[at_].key > *reached);
  return none ? nullptr : &rows_[at_];
}

Result<std::vector<HeldKeys::Lacking>> HeldKeys::lacking(
    std::vector<Row> rows, const std::optional<std::string>& reached) {
  std::vector<Lacking> lacking;
  std::size_t wanted = 0;
  for (;;) {
    const auto held = next(reached);
    if (!held) return held.error();
    if (held.value() == nullptr) break;
    for (; wanted < rows.size() && rows[wanted].key < held.value()->key; ++wanted) {
      lacking.emplace_back(std::move(rows[wanted].key), std::move(rows[wanted].value));
    }
    if (wanted == rows.size() || rows[wanted].key != held.value()->key) {
      lacking.emplace_back(held.value()->key, std::nullopt);
    } else {
      Row& row = rows[wanted++];
      if (!is_the_same(held.value()->value, row.value)) {
        lacking.emplace_back(std::move(row.key), std::move(row.value));
      }
    }
    ++at_;
  }
  for (; wanted < rows.size(); ++wanted) {
    lacking.emplace_back(std::move(rows[wanted].key), std::move(rows[wanted].value));
  }
  return lacking;
}

}  // namespace leasehold::kv
