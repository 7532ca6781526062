#include <leasehold/base/assert.h>
#include <leasehold/replica/snapshot_sender.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace leasehold::replica {
namespace {

// In beats. A beat is a heartbeat, or the longer of this and a round trip if that is less: a group
// may send heartbeats minutes apart, and a lost chunk or a full disk must not cost it as much.
constexpr lease::Duration kBeatMax = std::chrono::milliseconds(100);

/// After this time without an answer a chunk is sent again; the pause before the next one doubles,
/// up to the second constant.
constexpr int kResendFirst = 2;
constexpr int kResendLast = 16;
/// The pause between the end of a sending and the next one to the same peer.
constexpr int kRest = 10;

/// A sender that was late may send this much sooner to make up for it.
constexpr lease::Duration kPaceSlack = std::chrono::milliseconds(20);

}  // namespace

lease::Duration SnapshotSender::beats(int count) const {
  const lease::Timing& timing = context_.core.timing();
  return std::min(timing.heartbeat, std::max(kBeatMax, timing.max_round_trip)) * count;
}

void SnapshotSender::send(const raft::SnapshotIntent& intent) {
  Sending sending;
  sending.intent = intent;
  sendings_[intent.to] = sending;
}

void SnapshotSender::heard(raft::NodeId peer) {
  if (sendings_.empty()) return;
  const auto found = sendings_.find(peer);
  if (found != sendings_.end()) found->second.heard = true;
}

bool SnapshotSender::usable() const {
  return held_ && held_->id.last.index >= context_.core.log().base().index;
}

void SnapshotSender::start(lease::Now now, Sending& sending) {
  const raft::SnapshotIntent intent = sending.intent;
  sending = Sending{};
  sending.intent = intent;
  sending.step = Step::sends;
  sending.heard = true;
  sending.resend_after = beats(kResendFirst);
  sending.progress_at = now.promise;
}

void SnapshotSender::rest(lease::Now now, Sending& sending) {
  sending.step = Step::rests;
  sending.rests_until = now.promise + beats(kRest);
}

void SnapshotSender::taken(lease::Now now, SnapshotTaken& event) {
  LEASEHOLD_ASSERT(taking_);
  taking_ = false;
  if (!event.snapshot.ok()) {
    unsupported_ = event.snapshot.error().code == ErrorCode::unsupported;
    take_again_at_ = now.promise + beats(kRest);
    return;
  }
  const TakenSnapshot& taken = event.snapshot.value();
  LEASEHOLD_ASSERT(!held_ && taken.size > 0);
  const raft::Log& log = context_.core.log();
  const std::optional<raft::Term> term = log.term_at(taken.last);
  if (!term) {
    // The log was cut, or another snapshot replaced it, while this one was made.
    context_.ports.snapshots.release(taken.tag);
    return;
  }
  ++context_.counters.snapshots_taken;
  held_ = Held{{{*term, taken.last}, taken.tag}, log.membership_at(taken.last), taken.size};
}

void SnapshotSender::drop_snapshot() {
  for (auto& [peer, sending] : sendings_) {
    if (sending.step != Step::sends) continue;
    sending.step = Step::waits;
    sending.token = 0;
  }
  context_.ports.snapshots.release(held_->id.tag);
  held_.reset();
  release_at_ = raft::PromiseInstant::never();
}

void SnapshotSender::read(lease::Now now, SnapshotRead& event) {
  const auto found = std::find_if(sendings_.begin(), sendings_.end(), [&event](const auto& item) {
    return item.second.token == event.token;
  });
  if (event.token == 0 || found == sendings_.end()) return;
  Sending& sending = found->second;
  sending.token = 0;
  sending.progress_at = sending.progress_at + (now.promise - sending.read_at);
  if (sending.step != Step::sends || sending.reading != sending.sent)
    return;  // the sending has moved to another offset
  if (!event.data.ok()) {
    // Another snapshot may be intact.
    drop_snapshot();
    take_again_at_ = now.promise + beats(kRest);
    return;
  }
  Bytes& data = event.data.value();
  LEASEHOLD_ASSERT(!data.empty() && sending.sent + data.size() <= held_->size);
  raft::SnapshotChunk chunk;
  chunk.id = held_->id;
  chunk.membership = held_->membership;
  chunk.size = held_->size;
  chunk.offset = sending.sent;
  chunk.data = data;
  if (!context_.core.stamp(sending.intent, chunk)) return;  // turn() forgets it
  const std::uint64_t bytes = data.size();
  context_.send(found->first, raft::Message(std::move(chunk)));
  ++context_.counters.chunks_sent;
  context_.counters.chunk_bytes_sent += bytes;
  if (sending.sent == sending.acked) sending.resend_at = now.promise + sending.resend_after;
  sending.sent += bytes;
  if (const std::uint64_t rate = context_.limits.snapshot_bytes_per_second; rate > 0) {
    const auto cost = std::chrono::microseconds(bytes * 1'000'000 / rate);
    pace_ = std::max(pace_, now.promise - kPaceSlack) + cost;
  }
}

void SnapshotSender::replied(lease::Now now, raft::NodeId from, const raft::SnapshotReply& reply) {
  const auto found = sendings_.find(from);
  if (found == sendings_.end()) return;
  Sending& sending = found->second;
  if (sending.step != Step::sends || reply.id != held_->id || reply.offset > held_->size) return;
  if (reply.request_term != sending.intent.term || reply.term != sending.intent.term) return;
  if (reply.refused) return rest(now, sending);
  sending.reported = reply.offset;
  if (reply.offset > sending.best) {
    sending.best = reply.offset;
    sending.progress_at = now.promise;
    sending.resend_after = beats(kResendFirst);
  }
  if (sending.probing) {
    // Only here `acked` may go back: the peer has lost what it had.
    sending.probing = false;
    sending.acked = sending.sent = reply.offset;
  } else if (reply.offset > sending.acked) {
    sending.acked = reply.offset;
    sending.sent = std::max(sending.sent, sending.acked);
    sending.resend_at = now.promise + sending.resend_after;
  }
  if (sending.acked < held_->size) return;
  ++context_.counters.snapshots_sent;
  sending.complete = true;
  rest(now, sending);
}

bool SnapshotSender::wants_to_read(const Sending& sending) const {
  if (sending.step != Step::sends || sending.token != 0 || sending.sent >= held_->size)
    return false;
  if (sending.sent == sending.acked) return true;
  const std::uint64_t chunk = context_.limits.snapshot_chunk_bytes;
  return !sending.probing &&
         sending.sent + chunk <= sending.acked + context_.limits.snapshot_window_bytes;
}

bool SnapshotSender::awaits_answer(const Sending& sending) const {
  return sending.step == Step::sends && sending.token == 0 && sending.sent > sending.acked;
}

void SnapshotSender::pump(lease::Now now, Sending& sending) {
  if (!wants_to_read(sending)) return;
  if (now.promise < pace_) {
    // The sender waits for itself, not for the peer.
    sending.progress_at = std::max(sending.progress_at, pace_);
    return;
  }
  sending.token = ++last_token_;
  sending.reading = sending.sent;
  sending.read_at = now.promise;
  const std::uint64_t bytes =
      std::min<std::uint64_t>(context_.limits.snapshot_chunk_bytes, held_->size - sending.sent);
  context_.ports.snapshots.read(sending.token, held_->id.tag, sending.sent,
                                static_cast<std::size_t>(bytes));
}

/// False: the sending has ended.
bool SnapshotSender::pass_time(lease::Now now, Sending& sending) {
  if (sending.step == Step::rests) return now.promise < sending.rests_until;
  if (sending.step != Step::sends) return true;
  // While it reads, the peer waits for this node.
  const bool waits = sending.token == 0;
  if (waits && now.promise >= sending.progress_at + context_.limits.snapshot_patience) return false;
  if (awaits_answer(sending) && now.promise >= sending.resend_at) {
    sending.probing = true;
    sending.acked = sending.sent = sending.reported;
    sending.resend_after = std::min(2 * sending.resend_after, beats(kResendLast));
  }
  return true;
}

void SnapshotSender::follow(lease::Now now) {
  for (auto at = following_.begin(); at != following_.end();) {
    Following& following = at->second;
    const auto peer = context_.core.progress().find(at->first);
    // One that needs another snapshot needs no entries; and this node may lead no more.
    const bool follows = peer != context_.core.progress().end() &&
                         peer->second.state != raft::ProgressState::snapshot &&
                         peer->second.match_index < context_.core.log().last_index();
    if (follows && peer->second.match_index > following.match) {
      following = {peer->second.match_index, now.promise};
    }
    const bool silent = now.promise >= following.progress_at + context_.limits.snapshot_patience;
    at = follows && !silent ? std::next(at) : following_.erase(at);
  }
}

bool SnapshotSender::turn(lease::Now now) {
  if (sendings_.empty() && following_.empty() && !held_) return false;
  bool told_core = false;
  if (held_ && !usable()) drop_snapshot();
  for (auto at = sendings_.begin(); at != sendings_.end();) {
    Sending& sending = at->second;
    const bool open = context_.core.current(sending.intent);
    if (open && pass_time(now, sending)) {
      ++at;
      continue;
    }
    if (open) {
      context_.core.snapshot_ended(now, sending.intent);
      told_core = true;
    } else {
      following_[at->first] = {raft::Index(), now.promise};
    }
    at = sendings_.erase(at);
  }
  follow(now);
  bool wanted = false;
  for (auto& [peer, sending] : sendings_) {
    if (sending.step == Step::waits && sending.heard) {
      wanted = true;
      if (held_) start(now, sending);
    }
    pump(now, sending);
  }
  if (wanted && !held_ && !taking_ && !unsupported_ && now.promise >= take_again_at_) {
    taking_ = true;
    context_.ports.snapshots.take();
  }
  if (!held_ || !sendings_.empty()) {
    release_at_ = raft::PromiseInstant::never();
  } else if (release_at_ == raft::PromiseInstant::never()) {
    release_at_ = now.promise + context_.limits.snapshot_keep;
  } else if (now.promise >= release_at_) {
    drop_snapshot();
  }
  return told_core;
}

raft::PromiseInstant SnapshotSender::next_deadline() const {
  raft::PromiseInstant next = release_at_;
  for (const auto& [peer, sending] : sendings_) {
    if (sending.step == Step::rests) next = std::min(next, sending.rests_until);
    if (awaits_answer(sending)) next = std::min(next, sending.resend_at);
    if (wants_to_read(sending)) next = std::min(next, pace_);
    if (sending.step == Step::waits && sending.heard && !taking_ && !unsupported_) {
      next = std::min(next, take_again_at_);
    }
  }
  return next;
}

std::optional<raft::Index> SnapshotSender::holds() const {
  std::optional<raft::Index> from;
  const auto hold = [&from](raft::Index index) { from = std::min(from.value_or(index), index); };
  for (const auto& [peer, sending] : sendings_) {
    if (held_ && (sending.step == Step::sends || sending.complete)) hold(held_->id.last.index);
    // The snapshot that is being made ends somewhere in the log.
    if (taking_ && sending.heard) hold(context_.core.log().base().index);
  }
  for (const auto& [peer, following] : following_) hold(following.match);
  return from;
}

void SnapshotSender::status(std::vector<SnapshotTransfer>& out) const {
  for (const auto& [peer, sending] : sendings_) {
    if (sending.step != Step::sends) continue;
    out.push_back({peer, true, held_->id.last.index, sending.acked, held_->size});
  }
}

}  // namespace leasehold::replica
