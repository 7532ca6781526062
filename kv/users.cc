#include <leasehold/kv/users.h>

#include <utility>

namespace leasehold::kv {

std::shared_ptr<const UserMap> Users::list() const {
  const std::lock_guard lock(mutex_);
  return users_;
}

const User* Users::find(std::string_view name) const {
  const auto at = users_->find(name);
  return at == users_->end() ? nullptr : at->second.get();
}

void Users::set(std::string_view name, User user) {
  UserMap users = *users_;
  changed_.emplace(name);
  changed_bytes_ += name.size() + user.rules.size();
  users.insert_or_assign(std::string(name), std::make_shared<const User>(std::move(user)));
  show(std::move(users));
}

bool Users::remove(std::string_view name) {
  const auto at = users_->find(name);
  if (at == users_->end()) return false;
  UserMap users = *users_;
  users.erase(at->first);
  changed_.emplace(name);
  show(std::move(users));
  return true;
}

void Users::saved() {
  changed_.clear();
  changed_bytes_ = 0;
}

void Users::replace(UserMap users) {
  saved();
  show(std::move(users));
}

void Users::show(UserMap users) {
  auto shown = std::make_shared<const UserMap>(std::move(users));
  const std::lock_guard lock(mutex_);
  users_.swap(shown);
  changes_.fetch_add(1, std::memory_order_release);
}

}  // namespace leasehold::kv
