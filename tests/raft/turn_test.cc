// A turn takes any number of inputs. Whatever comes in one, storage gets the log and the hard state
// that the core goes by, and no message claims what a crash could take back.
//
// One core, a follower among five. The others are a history that Raft allows: a leader for each
// term, whose log holds what was committed before it.

#include "group.h"

#include <leasehold/base/random.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace leasehold::raft::test {
namespace {

/// What a disk has: the log by the terms of its entries, and the hard state.
struct Image {
  HardState hard_state;
  LogBase base;
  std::vector<Term> terms;  ///< the first stands behind the base

  Index last() const { return base.id.index + terms.size(); }
  std::optional<Term> term_at(Index index) const {
    if (index == base.id.index) return base.id.term;
    if (index < base.id.index || index > last()) return std::nullopt;
    return terms[static_cast<std::size_t>(index - base.id.index) - 1];
  }
  /// False: the batch does not fit the log that it is for.
  bool write(const PersistBatch& batch) {
    if (batch.hard_state) hard_state = *batch.hard_state;
    if (batch.reset) {
      base = *batch.reset;
      terms.clear();
    }
    if (batch.truncate_from) {
      if (*batch.truncate_from <= base.id.index || *batch.truncate_from > last()) return false;
      terms.resize(static_cast<std::size_t>(*batch.truncate_from - base.id.index) - 1);
    }
    for (const Entry& entry : batch.entries) {
      if (entry.id.index != last().next()) return false;
      terms.push_back(entry.id.term);
    }
    if (!batch.cut) return true;
    if (term_at(batch.cut->id.index) != batch.cut->id.term) return false;
    const auto gone = static_cast<std::ptrdiff_t>(batch.cut->id.index - base.id.index);
    terms.erase(terms.begin(), terms.begin() + gone);
    base = *batch.cut;
    return true;
  }
};

/// A leader of the history, with its log from the first entry on.
struct Past {
  NodeId id;
  std::vector<Term> log;
  std::uint64_t committed = 0;  ///< as far as it ever learned

  LogId at(std::uint64_t index) const {
    return index == 0 ? LogId{} : LogId{log[static_cast<std::size_t>(index) - 1], Index(index)};
  }
};

class Follower {
 public:
  explicit Follower(std::uint64_t seed) : random_(seed) {
    for (std::uint64_t id = 1; id <= 5; ++id) {
      members_.members.push_back({NodeId(id), Uuid{id, id}, "node" + std::to_string(id)});
      members_.voters.emplace_back(id);
    }
    now_ = {HolderInstant(std::chrono::hours(1)), PromiseInstant(std::chrono::hours(1))};
    written_.base.membership = durable_.base.membership = members_;
    leaders_.emplace(Term(1), Past{NodeId(1), {Term(1)}, 0});
    start();
  }

  void run(int turns) {
    for (int i = 0; i < turns && !::testing::Test::HasFatalFailure(); ++i) {
      // The follower was away for some of it.
      for (std::uint64_t n = random_.chance(1, 3) ? up_to(20) : 1; n > 0; --n) advance_history();
      turn();
      const std::uint64_t what = random_.below(20);
      if (what < 9) sync();
      if (what == 9) crash();
    }
  }
  int twice() const { return twice_; }
  int resets() const { return resets_; }
  int cuts() const { return cuts_; }
  int replies() const { return replies_; }

 private:
  std::uint64_t up_to(std::uint64_t most) { return random_.below(most + 1); }

  // ---- The others ----

  void advance_history() {
    Past& newest = leaders_.rbegin()->second;
    const Term term = leaders_.rbegin()->first;
    if (random_.chance(1, 3)) newest.log.push_back(term);
    // Only entries of its own term are committed by counting.
    if (random_.chance(1, 6)) {
      const std::uint64_t index = up_to(newest.log.size());
      if (index > committed_ && newest.at(index).term == term) committed_ = index;
    }
    if (random_.chance(1, 2)) newest.committed = committed_;
    if (!random_.chance(1, 6)) return;
    auto from = leaders_.begin();
    std::advance(from, static_cast<std::ptrdiff_t>(random_.below(leaders_.size())));
    Past next = from->second;
    if (next.log.size() < committed_ || !holds_committed(next)) next = newest;
    const std::uint64_t kept = committed_ + up_to(next.log.size() - committed_);
    next.log.resize(static_cast<std::size_t>(kept));
    next.log.push_back(term.next());
    const NodeId others[] = {NodeId(1), NodeId(3), NodeId(4), NodeId(5)};
    next.id = others[random_.below(4)];
    next.committed = std::min(next.committed, committed_);
    leaders_.emplace(term.next(), std::move(next));
  }

  bool holds_committed(const Past& past) const {
    const Past& newest = leaders_.rbegin()->second;
    return std::equal(newest.log.begin(),
                      newest.log.begin() + static_cast<std::ptrdiff_t>(committed_),
                      past.log.begin());
  }

  /// As a rule of a term that the core has not left behind, the nearest more often.
  const std::pair<const Term, Past>& some_leader() {
    auto at = random_.chance(1, 12) ? leaders_.begin() : leaders_.lower_bound(core_->term());
    if (at == leaders_.end()) --at;
    const auto ahead = static_cast<std::uint64_t>(std::distance(at, leaders_.end()));
    const std::uint64_t first = random_.below(ahead);
    const std::uint64_t second = random_.below(ahead);
    std::advance(at, static_cast<std::ptrdiff_t>(std::min({first, second, std::uint64_t{3}})));
    return *at;
  }

  // ---- Inputs ----

  void turn() {
    truncations_ = 0;
    const std::uint64_t inputs = 1 + random_.below(6);
    for (std::uint64_t i = 0; i < inputs; ++i) {
      const LogId last = core_->log().last();
      input();
      if (core_->log().base().index <= last.index && !core_->log().matches(last)) ++truncations_;
    }
    if (truncations_ > 1) ++twice_;
    drain();
  }

  void input() {
    now_.holder = now_.holder + ms(1);
    now_.promise = now_.promise + ms(1);
    const std::uint64_t what = random_.below(25);
    if (what == 0) {
      cut();
    } else if (what == 1) {
      snapshot();
    } else {
      append();
    }
  }

  void append() {
    const auto& [term, leader] = some_leader();
    AppendRequest m;
    m.term = term;
    const std::uint64_t last = leader.log.size();
    const std::uint64_t low = core_->log().base().index.value();
    std::uint64_t prev = up_to(last);
    if (prev < low && random_.chance(3, 4)) prev = std::min(last, low);
    // Often just behind where the two logs are alike.
    if (random_.chance(1, 2)) {
      prev = std::min(last, core_->log().last_index().value());
      while (prev > low && !core_->log().matches(leader.at(prev))) --prev;
    }
    m.prev = leader.at(prev);
    const std::uint64_t count = up_to(std::min<std::uint64_t>(last - prev, 5));
    for (std::uint64_t i = 1; i <= count; ++i) {
      m.entries.push_back({leader.at(prev + i), EntryKind::command, Bytes("x")});
    }
    m.commit = Index(leader.committed);
    m.round = Round(++round_);
    m.lease = core_->options().timing.lease;
    m.drift_ppm = lease::Timing().max_clock_drift_ppm;
    core_->step(now_, peer(leader.id), std::move(m));
  }

  void snapshot() {
    const auto& [term, leader] = some_leader();
    if (leader.committed == 0) return;
    SnapshotChunk chunk;
    chunk.term = term;
    chunk.round = Round(++round_);
    chunk.lease = core_->options().timing.lease;
    chunk.drift_ppm = lease::Timing().max_clock_drift_ppm;
    const std::uint64_t last =
        random_.chance(1, 2) ? leader.committed : 1 + up_to(leader.committed - 1);
    chunk.id = {leader.at(last), ++tag_};
    chunk.membership = members_;
    chunk.size = 1;
    chunk.data = Bytes("x");
    const SnapshotId id = chunk.id;
    core_->step(now_, peer(leader.id), std::move(chunk));
    if (core_->term() != term) return;
    if (core_->snapshot_received(now_, id, members_)) ++resets_;
    core_->chunk_stored(now_, {leader.id, term, Round(round_), id, false, 1});
  }

  void cut() {
    const Index most = std::min({core_->durable_index(), core_->commit_index(), applied_});
    const Index base = core_->log().base().index;
    if (most <= base) return;
    core_->cut_log(now_, base + 1 + up_to(most - base - 1));
    ++cuts_;
  }

  // ---- Outputs ----

  void drain() {
    Ready ready;
    while (core_->take_ready(ready)) {
      ASSERT_TRUE(written_.write(ready.persist));
      if (!ready.persist.empty()) waiting_.push_back(ready.persist);
      for (const OutgoingMessage& m : ready.messages) leaves(m.to, m.message);
      for (HeldMessage& m : ready.held) held_.push_back(std::move(m));
      if (ready.install) {
        ASSERT_GE(durable_.base.id.index, ready.install->last.index);
        applied_ = ready.install->last.index;
      }
      if (ready.apply_to.value() != 0) {
        ASSERT_GT(ready.apply_to, applied_);
        ASSERT_GE(applied_, core_->log().base().index) << "an entry that is gone from the log";
        applied_ = ready.apply_to;
      }
    }
    check();
  }

  void check() {
    const Log& log = core_->log();
    ASSERT_EQ(written_.hard_state, core_->hard_state());
    ASSERT_EQ(written_.base.id, log.base());
    ASSERT_EQ(written_.last(), log.last_index());
    for (Index i = log.base().index; i <= log.last_index(); i = i.next()) {
      ASSERT_EQ(written_.term_at(i), log.term_at(i)) << "index " << i.value();
    }
    // What it takes for durable is.
    for (Index i = log.base().index; i <= core_->durable_index(); i = i.next()) {
      if (i < durable_.base.id.index) continue;
      ASSERT_EQ(durable_.term_at(i), log.term_at(i)) << "index " << i.value();
    }
    // What is applied would be in the log after a crash, or is below it.
    ASSERT_LE(applied_, durable_.last());
  }

  void sync() {
    if (waiting_.empty()) return;
    const std::uint64_t count = 1 + up_to(waiting_.size() - 1);
    ReadyId newest;
    for (std::uint64_t i = 0; i < count; ++i) {
      ASSERT_TRUE(durable_.write(waiting_.front()));
      newest = waiting_.front().id;
      waiting_.pop_front();
    }
    core_->persisted(now_, newest);
    std::deque<HeldMessage> kept;
    for (HeldMessage& m : held_) {
      if (m.after <= newest) {
        leaves(m.to, m.message);
      } else {
        kept.push_back(std::move(m));
      }
    }
    held_.swap(kept);
    drain();
  }

  /// A crash now must take back nothing of what this message says.
  void leaves(NodeId to, const Message& message) {
    Term term;
    Term asked;
    bool promised = false;
    if (const auto* append = std::get_if<AppendReply>(&message)) {
      ++replies_;
      term = append->term;
      asked = append->request_term;
      promised = append->promised;
      if (append->matched) holds(asked, append->index);
    } else if (const auto* chunk = std::get_if<SnapshotReply>(&message)) {
      term = chunk->term;
      asked = chunk->request_term;
      promised = chunk->promised;
    }
    ASSERT_GE(durable_.hard_state.term, term) << "a term that is not durable";
    // A later promise has taken its place, durably.
    if (!promised || durable_.hard_state.promise.term > asked) return;
    ASSERT_EQ(durable_.hard_state.promise.holder, to) << "a promise that is not durable";
    ASSERT_EQ(durable_.hard_state.promise.term, asked);
  }

  /// Unless a later leader has replaced it since, durably.
  void holds(Term term, Index index) {
    if (durable_.hard_state.term > term) return;
    const Past& leader = leaders_.at(term);
    ASSERT_LE(index.value(), leader.log.size());
    ASSERT_LE(index, durable_.last()) << "an entry that is not durable";
    for (Index i = durable_.base.id.index; i <= index; i = i.next()) {
      ASSERT_EQ(durable_.term_at(i), leader.at(i.value()).term) << "index " << i.value();
    }
  }

  // ---- Crashes ----

  void crash() {
    for (std::uint64_t survive = up_to(waiting_.size()); survive > 0; --survive) {
      ASSERT_TRUE(durable_.write(waiting_.front()));
      waiting_.pop_front();
    }
    waiting_.clear();
    held_.clear();
    written_ = durable_;
    start();
  }

  void start() {
    // A state machine that is behind the log's base gets the snapshot that stands there.
    applied_ = std::max(applied_, durable_.base.id.index);
    CoreOptions options;
    options.id = NodeId(2);
    options.uuid = Uuid{2, 2};
    options.incarnation = Incarnation(++starts_);
    options.seed = starts_;
    InitialState state;
    state.hard_state = durable_.hard_state;
    state.base = durable_.base.id;
    state.base_membership = members_;
    state.last_index = durable_.last();
    for (Index i = state.base.index.next(); i <= state.last_index; i = i.next()) {
      const Term term = *durable_.term_at(i);
      if (state.runs.empty() || state.runs.back().term != term) state.runs.push_back({term, i});
    }
    state.applied = applied_;
    ASSERT_LE(applied_, state.last_index);
    core_.emplace(options, std::move(state), now_);
    drain();
  }

  Random random_;
  Membership members_;
  Now now_;
  std::map<Term, Past> leaders_;
  std::uint64_t committed_ = 0;
  std::uint64_t round_ = 0;
  std::uint64_t tag_ = 0;
  std::uint64_t starts_ = 0;
  std::optional<Core> core_;
  Image written_;
  Image durable_;
  std::deque<PersistBatch> waiting_;
  std::deque<HeldMessage> held_;
  Index applied_;
  int truncations_ = 0;
  int twice_ = 0;
  int resets_ = 0;
  int cuts_ = 0;
  int replies_ = 0;
};

TEST(Turns, StorageGetsTheLogWhateverComesInOne) {
  int twice = 0;
  int resets = 0;
  int cuts = 0;
  int replies = 0;
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Follower follower(seed);
    follower.run(300);
    if (HasFatalFailure()) return;
    twice += follower.twice();
    resets += follower.resets();
    cuts += follower.cuts();
    replies += follower.replies();
  }
  EXPECT_GT(twice, 1000) << "turns in which the log was truncated more than once";
  EXPECT_GT(resets, 100);
  EXPECT_GT(cuts, 1000);
  EXPECT_GT(replies, 30'000);
}

}  // namespace
}  // namespace leasehold::raft::test
