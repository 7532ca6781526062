#include <leasehold/kv/command.h>
#include <leasehold/kv/command_limits.h>
#include <leasehold/kv/load_limit.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <variant>

namespace leasehold::kv {
namespace {

/// How many keys a command names, with repetitions.
struct KeysNamed {
  template <class Other>
  std::size_t operator()(const Other&) const {
    return 1;
  }
  std::size_t operator()(const Rename&) const { return 2; }
  std::size_t operator()(const Copy&) const { return 2; }
  std::size_t operator()(const Lcs&) const { return 2; }
  std::size_t operator()(const Del& del) const { return del.keys.size(); }
  std::size_t operator()(const DelEqual& del) const { return del.keys.size(); }
  std::size_t operator()(const MSet& mset) const { return mset.pairs.size(); }
  std::size_t operator()(const Exists& exists) const { return exists.keys.size(); }
  std::size_t operator()(const MGet& mget) const { return mget.keys.size(); }
  std::size_t operator()(const Transaction& transaction) const {
    std::size_t count = transaction.watched.size();
    for (const Operation& operation : transaction.operations) count += std::visit(*this, operation);
    return count;
  }
  std::size_t operator()(const Once& once) const { return in(once.command); }
  std::size_t operator()(const ActAs& acting) const { return in(acting.command); }

  /// Of bytes that are no command: 0, as they are refused.
  std::size_t in(std::string_view command) const {
    const auto decoded = decode_command(command);
    return decoded ? std::visit(*this, decoded.value()) : 0;
  }
};

/// Without decoding it: most commands are short.
bool is_about_few_keys(std::string_view command) {
  switch (type_in(command)) {
    case type_of(Tag<Del>()):
    case type_of(Tag<DelEqual>()):
    case type_of(Tag<MSet>()):
    case type_of(Tag<Exists>()):
    case type_of(Tag<MGet>()):
    case type_of(Tag<Once>()):
    case type_of(Tag<ActAs>()):
    case kTransactionType: return false;
    default: return true;
  }
}

}  // namespace

Result<Bytes> limit_loads(Bytes command, raft::FeatureLevel level) {
  if (level < raft::kSettingsLevel || is_about_few_keys(command.view())) return command;
  if (KeysNamed().in(command.view()) <= kFewKeys) return command;
  return encode_command(LoadAtMost{kLoadedBytesMax, command.view()});
}

}  // namespace leasehold::kv
