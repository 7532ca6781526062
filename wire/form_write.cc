// Writes each message in its protobuf form.
#include <leasehold/raft/settings_form.h>
#include <leasehold/wire/form.h>
#include <leasehold/wire/frame.h>
#include <leasehold/wire/raft.pb.h>

#include <string>
#include <utility>
#include <variant>

namespace leasehold::wire {
namespace {

/// Writes one message into its protobuf form.
struct ToProtobuf {
  pb::Message& out;
  std::uint16_t version;

  template <class Request>
  static void vote_request(const Request& m, auto* to) {
    to->set_term(m.term.value());
    to->set_last_term(m.last.term.value());
    to->set_last_index(m.last.index.value());
  }
  template <class Reply>
  static void vote_reply(const Reply& m, auto* to) {
    to->set_request_term(m.request_term.value());
    to->set_term(m.term.value());
    to->set_granted(m.granted);
    to->set_leader(m.leader.value());
  }

  void operator()(const raft::PreVoteRequest& m) {
    vote_request(m, out.mutable_pre_vote_request());
  }
  void operator()(const raft::PreVoteReply& m) { vote_reply(m, out.mutable_pre_vote_reply()); }
  static void token(const raft::TransferToken& token, pb::TransferToken* to) {
    to->set_term(token.term.value());
    to->set_target(token.target.value());
    to->set_last_index(token.last.value());
  }
  void operator()(const raft::VoteRequest& m) {
    vote_request(m, out.mutable_vote_request());
    if (m.token) token(*m.token, out.mutable_vote_request()->mutable_token());
  }
  void operator()(const raft::TimeoutNow& m) {
    token(m.token, out.mutable_timeout_now()->mutable_token());
  }
  void operator()(const raft::VoteReply& m) { vote_reply(m, out.mutable_vote_reply()); }

  static void epoch(const lease::Epoch& epoch, pb::Epoch* to) {
    to->set_incarnation(epoch.incarnation.value());
    to->set_counter(epoch.counter);
  }
  void operator()(const raft::AppendRequest& m) {
    auto* to = out.mutable_append_request();
    if (m.bind && version >= kSettingsVersion) {
      to->mutable_bind()->set_beat(m.bind->beat.value());
      epoch(m.bind->epoch, to->mutable_bind()->mutable_epoch());
    }
    to->set_term(m.term.value());
    to->set_prev_term(m.prev.term.value());
    to->set_prev_index(m.prev.index.value());
    to->set_commit(m.commit.value());
    to->set_round(m.round.value());
    to->set_lease_ns(m.lease.count());
    if (version >= kSettingsVersion) to->set_drift_ppm(static_cast<std::uint32_t>(m.drift_ppm));
    const int count = static_cast<int>(m.entries.size());
    if (count == 0) return;
    to->mutable_entry_terms()->Reserve(count);
    to->mutable_entry_kinds()->Reserve(count);
    to->mutable_entry_bytes()->Reserve(count);
    for (const raft::Entry& entry : m.entries) {
      to->add_entry_terms(entry.id.term.value());
      to->add_entry_kinds(static_cast<std::uint32_t>(entry.kind));
      to->add_entry_bytes(static_cast<std::uint32_t>(entry.payload.size()));
    }
  }
  void operator()(const raft::AppendReply& m) {
    auto* to = out.mutable_append_reply();
    to->set_request_term(m.request_term.value());
    to->set_term(m.term.value());
    to->set_promised(m.promised);
    to->set_round(m.round.value());
    to->set_matched(m.matched);
    to->set_index(m.index.value());
    to->set_hint_term(m.hint_term.value());
    to->set_rejected_prev(m.rejected_prev.value());
    if (m.bound && version >= kSettingsVersion) epoch(*m.bound, to->mutable_bound());
  }
  void operator()(const raft::ReadIndexRequest& m) {
    auto* to = out.mutable_read_index_request();
    to->set_incarnation(m.incarnation.value());
    to->set_id(m.id);
    to->set_quorum(m.quorum);
  }
  void operator()(const raft::ReadIndexReply& m) {
    auto* to = out.mutable_read_index_reply();
    to->set_incarnation(m.incarnation.value());
    to->set_id(m.id);
    if (m.index) to->set_index(m.index->value());
    to->set_leader(m.leader.value());
  }
  void operator()(const wire::ForwardRequest& m) {
    auto* to = out.mutable_forward_request();
    to->set_term(m.term.value());
    to->set_incarnation(m.incarnation.value());
    to->set_sequence(m.sequence);
  }
  void operator()(const wire::ForwardReply& m) {
    auto* to = out.mutable_forward_reply();
    to->set_incarnation(m.incarnation.value());
    to->set_sequence(m.sequence);
    to->set_reason(static_cast<std::uint32_t>(m.reason));
    to->set_leader(m.leader.value());
  }
  void operator()(const wire::FormationConfirm& m) {
    auto* to = out.mutable_formation_confirm();
    to->set_formed(m.formed);
    if (m.settings && version >= kSettingsVersion) {
      std::string bytes;
      LittleWriter writer(bytes);
      raft::encode_settings(*m.settings, writer);
      to->set_settings(std::move(bytes));
    }
    for (const raft::Member& member : m.members) {
      auto* to_member = to->add_members();
      to_member->set_id(member.id.value());
      to_member->set_uuid_high(member.uuid.high);
      to_member->set_uuid_low(member.uuid.low);
      to_member->set_address(member.address);
    }
  }
  void operator()(const raft::SnapshotChunk& m) {
    auto* to = out.mutable_snapshot_chunk();
    to->set_term(m.term.value());
    to->set_round(m.round.value());
    to->set_lease_ns(m.lease.count());
    if (version >= kSettingsVersion) to->set_drift_ppm(static_cast<std::uint32_t>(m.drift_ppm));
    to->set_last_term(m.id.last.term.value());
    to->set_last_index(m.id.last.index.value());
    to->set_tag(m.id.tag);
    const Bytes membership = raft::encode_membership(m.membership);
    to->set_membership(membership.view().data(), membership.size());
    to->set_size(m.size);
    to->set_offset(m.offset);
  }
  void operator()(const raft::SnapshotReply& m) {
    auto* to = out.mutable_snapshot_reply();
    to->set_request_term(m.request_term.value());
    to->set_term(m.term.value());
    to->set_promised(m.promised);
    to->set_round(m.round.value());
    to->set_last_term(m.id.last.term.value());
    to->set_last_index(m.id.last.index.value());
    to->set_tag(m.id.tag);
    to->set_refused(m.refused);
    to->set_offset(m.offset);
  }
  void operator()(const raft::ProcessBeat& m) {
    auto* to = out.mutable_process_beat();
    to->set_beat(m.beat.value());
    to->set_lease_ns(m.lease.count());
    to->set_drift_ppm(static_cast<std::uint32_t>(m.drift_ppm));
    for (const raft::ReleasedGroup& released : m.released) {
      auto* to_released = to->add_released();
      to_released->set_group(released.group.value());
      to_released->set_term(released.term.value());
      to_released->set_since(released.since.value());
    }
  }
  void operator()(const raft::ProcessBeatReply& m) {
    auto* to = out.mutable_process_beat_reply();
    to->set_incarnation(m.incarnation.value());
    to->set_beat(m.beat.value());
    epoch(m.epoch, to->mutable_epoch());
  }
  void operator()(const raft::Message& m) { std::visit(*this, m); }
};

}  // namespace

void write_form(const Payload& payload, std::uint16_t version, pb::Message& form) {
  std::visit(ToProtobuf{form, version}, payload);
}

}  // namespace leasehold::wire
