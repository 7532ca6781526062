#include <leasehold/server/front/script_cache.h>
#include <leasehold/server/front/words.h>

namespace leasehold::server {

void ScriptCache::add(const std::string& digest, const Script& script) {
  const std::lock_guard lock(mutex_);
  if (!scripts_.emplace(digest, script).second) return;
  order_.push_back(digest);
  if (order_.size() > kScriptsMax) {
    scripts_.erase(order_.front());
    order_.pop_front();
  }
}

std::optional<Script> ScriptCache::find(std::string_view digest) const {
  const std::lock_guard lock(mutex_);
  const auto at = scripts_.find(lowered(digest));
  if (at == scripts_.end()) return std::nullopt;
  return at->second;
}

void ScriptCache::clear() {
  const std::lock_guard lock(mutex_);
  scripts_.clear();
  order_.clear();
}

}  // namespace leasehold::server
