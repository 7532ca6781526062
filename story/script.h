// The commands of a scenario.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/story/cluster.h>
#include <leasehold/story/record.h>
#include <leasehold/story/teller.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace leasehold::story {

/// Bytes that one script may print. A term may change every millisecond, for hours.
inline constexpr std::size_t kScriptBytesMax = 1U << 20U;

/// Runs one command after the other against one Cluster, and collects what they print.
class Script {
 public:
  using Words = std::vector<std::string>;

  Script(std::string title, Sink sink);

  /// An error says what is allowed. After an error, do not use the script any more.
  Result<void> run(const std::string& command);
  std::vector<std::string> take_output();

  /// Every command with its arguments and a sentence: for --help and for the docs.
  static std::string help();

 private:
  using Done = Result<void>;
  struct Command {
    const char* name;
    const char* arguments;
    const char* about;
    Done (Script::*run)(const Words&);
    bool needs_nodes;
  };
  static const std::vector<Command>& commands();

  void print(const std::string& line);
  void hear(const Record& record);

  // script_words.cc
  static Error wrong(const std::string& what);
  Result<NodeId> node(const std::string& word) const;
  Result<NodeId> running(const std::string& word) const;
  /// "2" or "2b".
  Result<Replica> replica(const std::string& word) const;
  Result<Replica> running_replica(const std::string& word) const;
  Result<std::vector<Replica>> replica_or_all(const Words& words, std::size_t at) const;
  static Result<Duration> time(const std::string& word);
  static Result<std::uint64_t> number(const std::string& word);
  /// "name=value" of `words` from `first` on; refuses names that are not in `allowed`.
  static Result<std::map<std::string, std::string>> settings(
      const Words& words, std::size_t first, const std::vector<std::string>& allowed);
  /// Between two replicas of one group.
  Result<std::pair<Replica, Replica>> link(const std::string& word) const;
  Result<std::vector<std::uint64_t>> matching(const Words& words) const;
  /// Takes a trailing `full` or `brief` away.
  Detail detail(Words& words, Detail otherwise) const;

  // script.cc
  Done nodes(const Words& words);
  Done preset(const Words& words);
  Done mark(const Words& words);
  Done advance(const Words& words);
  Done let_run(const Words& words);
  Done campaign(const Words& words);
  Done tick(const Words& words);
  Done beat(const Words& words);
  Done delay(const Words& words);
  Done entries(const Words& words);
  Done drift(const Words& words);
  Done propose(const Words& words);
  Done read(const Words& words);
  Done deliver(const Words& words);
  Done drop(const Words& words);
  Done again(const Words& words);
  Done settle(const Words& words);
  Done cut(const Words& words);
  Done isolate(const Words& words);
  Done heal(const Words& words);

  // script_nodes.cc
  Done crash(const Words& words);
  Done notice(const Words& words);
  Done transfer(const Words& words);
  Done restart(const Words& words);
  static Result<raft::SettingsEdit> edit_of(const std::map<std::string, std::string>& given);
  Done clocks_keep(NodeId id, std::int64_t most) const;
  Done change_settings(const Words& words);
  Done pause(const Words& words);
  Done resume(const Words& words);
  Done disk(const Words& words);
  Done forge(const Words& words);
  Done sound_append(NodeId from, Replica to, const raft::AppendRequest& m) const;

  // script_show.cc
  Done show(const Words& words);
  Done expect(const Words& words);
  std::string state_of(Replica id) const;
  std::string log_of(Replica id) const;
  std::string lease_of(Replica id) const;
  std::string promise_of(Replica id) const;
  std::string timer_of(Replica id) const;
  Result<std::string> fact(const Words& words) const;

  std::string title_;
  Sink sink_;
  Teller teller_;
  std::unique_ptr<Cluster> cluster_;
  std::vector<std::string> output_;
  std::size_t printed_ = 0;  ///< bytes, with those that were dropped past the limit
  bool silent_ = false;
};

}  // namespace leasehold::story
