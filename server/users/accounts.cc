#include <leasehold/server/users/accounts.h>
#include <leasehold/server/users/password.h>

#include <fmt/format.h>

#include <utility>

namespace leasehold::server {

std::shared_ptr<const Accounts::Table> Accounts::table(const kv::Users& users) {
  // Before the users are read: at worst the table is made once more.
  const std::uint64_t changes = users.changes();
  const std::lock_guard lock(mutex_);
  if (table_ && seen_ >= changes) return table_;
  auto fresh = std::make_shared<Table>();
  const auto records = users.list();
  for (const auto& [name, record] : *records) {
    RightsPointer rights;
    if (table_) {
      const auto old = table_->find(name);
      if (old != table_->end() && old->second->version() == record->version) rights = old->second;
    }
    if (!rights) {
      UserRules rules;
      const bool readable = parse_rules(record->rules, rules);
      rights = std::make_shared<const Rights>(name, std::move(rules), record->version,
                                              record->created, catalogue_, readable);
    }
    fresh->emplace(name, std::move(rights));
  }
  if (fresh->find(kDefaultUser) == fresh->end()) {
    const auto old = table_ ? table_->find(kDefaultUser) : Table::const_iterator();
    const bool same = table_ && old != table_->end() && old->second->version() == 0;
    fresh->emplace(kDefaultUser,
                   same ? old->second
                        : std::make_shared<const Rights>(std::string(kDefaultUser), open_rules(), 0,
                                                         0, catalogue_));
  }
  table_ = std::move(fresh);
  seen_ = changes;
  return table_;
}

Accounts::RightsPointer Accounts::find(const kv::Users& users, std::string_view name) {
  const auto all = table(users);
  const auto at = all->find(name);
  return at == all->end() ? nullptr : at->second;
}

std::string Accounts::known_as(const Rights& rights, std::string_view digest) const {
  return keyed_digest(key_, fmt::format("{} {} {}", digest, rights.version(), rights.user()));
}

StoredPassword Accounts::knows(const Rights& rights, std::string_view digest) {
  const std::lock_guard lock(known_mutex_);
  if (key_.empty()) return std::nullopt;
  const auto at = known_.find(known_as(rights, digest));
  return at == known_.end() ? std::nullopt : StoredPassword(at->second);
}

std::string Accounts::same_check(const RightsPointer& rights, std::string_view name,
                                 std::string_view digest) {
  const std::lock_guard lock(known_mutex_);
  if (key_.empty()) key_ = random_hex(256);
  if (key_.empty()) return {};
  const std::string_view kind = rights ? "user" : "nobody";
  return keyed_digest(
      key_, fmt::format("{} {} {} {}", digest, rights ? rights->version() : 0, kind, name));
}

StoredPassword Accounts::check(const RightsPointer& rights, std::string_view digest) {
  if (!rights || rights->rules().passwords.empty()) {
    spend_a_check();
    return std::nullopt;
  }
  StoredPassword right;
  for (const std::string& stored : rights->rules().passwords) {
    if (password_work().matches(stored, digest)) right = stored;
  }
  if (!right) return std::nullopt;
  const std::lock_guard lock(known_mutex_);
  if (key_.empty()) key_ = random_hex(256);
  if (known_.size() >= kKnownPasswordsMax) known_.clear();
  if (!key_.empty()) known_.emplace(known_as(*rights, digest), *right);
  return right;
}

}  // namespace leasehold::server
