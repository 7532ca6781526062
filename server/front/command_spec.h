// What the front knows of a command: which others may be under way with it, its arity, its keys,
// its use in a transaction, and its functions. The commands themselves are in the room above:
// server/commands/command_table.h.
#pragma once

#include <leasehold/kv/command.h>
#include <leasehold/server/front/key_use.h>
#include <leasehold/server/users/command_catalogue.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::server {

class ServedGroups;
class Session;
class StoreReader;
struct ServerState;
using Arguments = std::vector<std::string_view>;

/// What a command touches; decides which others of a pipeline may be under way at the same time.
enum class CommandEffect : std::uint8_t {
  none,
  read,          ///< is answered when all writes before it are
  write,         ///< is proposed when all reads before it are answered
  after_writes,  ///< runs when all writes before it are answered
  after_reads,   ///< runs when all reads before it are answered
  /// Changes the form of replies, or is a write in one form and a read in another: runs when all
  /// before it are answered.
  after_all,
  /// Is many writes: runs when all before it are answered, and those behind it when it is.
  alone,
};

enum class CommandGroup : std::uint8_t {
  string,
  generic,
  transactions,
  connection,
  server,
  cluster,
  leasehold,
  scripting,
};

/// The reply to a client for a result of the store.
enum class ReplyForm : std::uint8_t {
  plain,
  type,  ///< how many exist: "string" or "none"
  // About the lease of a key: -1 (lives forever), -2 (no such key), or
  seconds_left,
  milliseconds_left,
  end_seconds,  ///< when, since 1970
  end_milliseconds,
  held_milliseconds,  ///< -3: it has another value, or there is none
  lease_info,         ///< and what this node knows of its time
  // About a key (OBJECT): null if there is none, or
  encoding,      ///< of a value: how Redis would store it
  count_one,     ///< how many exist: 1
  no_idle_time,  ///< how many exist: an error
  no_frequency,  ///< the same
  common_part,   ///< of two values; as an array of two: a map of them
  // For scripts, which are transactions (scripts.h): one Integer.
  how_many_if_done,      ///< of [done, how many]
  any_done,              ///< of [done, Ok or Nil]
  deleted_or_minus_one,  ///< of [exists, deleted]
  transaction,
};

/// What happens to a command after MULTI.
enum class InMulti : std::uint8_t {
  queued,  ///< has `make`
  here,    ///< is queued too, and needs no store: it runs at this node, when EXEC does
  refused,
  run,  ///< is about the transaction or the connection itself
};

/// Whether a command runs on a RESP2 connection that receives messages about changes. There a
/// message looks like a reply, so only a command whose reply cannot be taken for a message runs.
enum class WhileListening : std::uint8_t {
  refused,
  watching,    ///< runs after LEASEHOLD WATCH
  subscribed,  ///< runs after SUBSCRIBE or PSUBSCRIBE
  run,         ///< runs after each of them
};

struct CommandSpec {
  /// Lower case; of a subcommand "client|id".
  std::string_view name;
  /// Number of words, the name included; negative: at least this many.
  int arity;
  CommandEffect effect;
  CommandGroup group;
  InMulti in_multi;
  /// Positions of the keys in the form that Redis clients use: first, last, step. Zeros: none.
  int first_key, last_key, key_step;
  ReplyForm form;
  const char* summary;
  /// Makes what the store is asked for, with views into `args`. Returns the text of an error, which
  /// is empty if there is none. Null: `run` does it all.
  std::string (*make)(const Arguments& args, kv::Operation& operation);
  /// Appends one reply to `out`, or takes a place of the session. Of a read: called when the store
  /// may be read; never takes a place.
  void (*run)(Session& session, const Arguments& args, std::string& out);
  /// For a read of many keys, instead of `run`: appends the reply, on any thread.
  void (*scan)(StoreReader& reader, const Arguments& args, std::string& out) = nullptr;
  WhileListening while_listening = WhileListening::refused;
  /// It reads the records of keys and nothing else: what of a command it sees, each later one sees,
  /// and everything before that. See replica::LeaseLook::index_in_order().
  bool reads_records = false;
  // Of a read without keys, where there are many groups. Else it is for the one that the connection
  // has selected.
  /// It is made in each group, and the replies are put together.
  bool in_each_group = false;
  /// The number of the group, in ServedGroups::all().
  std::size_t (*group_of)(const ServerState& state, const Arguments& args,
                          const ServedGroups& groups) = nullptr;
};

/// Whether words of the command may be passwords: then no log shows them.
bool has_secret_words(const CommandSpec& spec);

/// The commands of a server, for its front. Any thread.
class CommandTable : public CommandCatalogue {
 public:
  /// What `args` (at least one word) ask for, subcommand included; null if it is unknown. Upper and
  /// lower case are equal.
  virtual const CommandSpec* find(const Arguments& args) const = 0;
  /// The text of the error for `args` that find() does not know.
  virtual std::string problem_of_unknown(const Arguments& args) const = 0;
  /// Its number in the catalogue.
  virtual std::size_t number_of(const CommandSpec& spec) const = 0;
  /// What a command whose arity fits does with keys and channels; of words that it will refuse,
  /// perhaps nothing. Views of `args`.
  virtual std::vector<KeyUse> uses_of(const CommandSpec& spec, const Arguments& args) const = 0;
};

/// Whether it belongs to what EXEC executes, also before MULTI. EXEC refuses if one of them is
/// refused: a client that pipelines goes on as if it were not.
inline bool is_of_transaction(const CommandSpec& spec) {
  return spec.group == CommandGroup::transactions || spec.name == "leasehold|expect";
}

inline bool arity_fits(const CommandSpec& spec, std::size_t words) {
  const auto count = static_cast<int>(words);
  return spec.arity >= 0 ? count == spec.arity : count >= -spec.arity;
}

/// Calls visit(key) for each key of a command whose arity fits.
template <class Visit>
void for_each_key(const CommandSpec& spec, const Arguments& args, Visit visit) {
  if (spec.first_key == 0) return;
  const int last =
      spec.last_key < 0 ? static_cast<int>(args.size()) + spec.last_key : spec.last_key;
  for (int i = spec.first_key; i <= last; i += spec.key_step) {
    visit(args[static_cast<std::size_t>(i)]);
  }
}

}  // namespace leasehold::server
