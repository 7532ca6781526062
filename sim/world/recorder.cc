#include <leasehold/sim/world/recorder.h>
#include <leasehold/sim/world/sim_node.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

namespace leasehold::sim {
namespace {

using story::Kind;
using story::Record;

std::string text_of(const Operation& operation) {
  std::string text = fmt::format("key {}", operation.key);
  if (operation.kind == OperationKind::write) text += fmt::format(" = {}", operation.value);
  return text;
}

/// Records leave out the first group.
raft::GroupId told_group(raft::GroupId group) {
  return group == kFirstGroup ? raft::GroupId() : group;
}

/// Null: none of this version runs. Asserts up().
const raft::Core* core_of(const SimNode& node, raft::GroupId group) {
  if (group == kFirstGroup) return node.running().present_core();
  for (const auto& side : node.side_groups()) {
    if (side->group() == group) return side->core();
  }
  return nullptr;
}

/// None: it is not one of Raft, nor a beat.
std::optional<Record> record_of_message(Duration at, Kind kind, raft::NodeId node,
                                        raft::NodeId peer, const wire::PeerMessage& message) {
  if (const auto* what = std::get_if<raft::Message>(&message.payload)) {
    Record told = story::record_of(at, kind, node, peer, *what);
    told.group = told_group(message.group);
    return told;
  }
  if (const auto* beat = std::get_if<raft::ProcessBeat>(&message.payload)) {
    return story::record_of(at, kind, node, peer, *beat);
  }
  if (const auto* reply = std::get_if<raft::ProcessBeatReply>(&message.payload)) {
    return story::record_of(at, kind, node, peer, *reply);
  }
  return std::nullopt;
}

}  // namespace

void Recorder::watch(std::uint64_t seed, const std::vector<SimNode*>& nodes) {
  for (const SimNode* node : nodes) {
    nodes_.push_back({node, {}});
    auto& watches = nodes_.back().watches;
    watches.try_emplace(kFirstGroup, node->id(), sink_);
    for (const auto& side : node->side_groups()) {
      watches.try_emplace(side->group(), node->id(), [this, group = side->group()](Record told) {
        told.group = group;
        sink_(told);
      });
    }
  }
  Record first = record(Kind::run, raft::kNobody);
  first.text = fmt::format("simulated seed {}", seed);
  first.number = nodes.size();
  sink_(first);
}

Record Recorder::record(Kind kind, raft::NodeId node) const {
  Record record;
  record.at = now();
  record.kind = kind;
  record.node = node;
  return record;
}

Recorder::Watched* Recorder::watched(raft::NodeId node) {
  const std::uint64_t number = node.value();
  return number >= 1 && number <= nodes_.size() ? &nodes_[number - 1] : nullptr;
}

// Trace::format() shows what the numbers of a line mean.
void Recorder::line(const TraceLine& line) {
  const raft::NodeId id(line.node);
  Watched* node = watched(id);
  if (line.kind == TraceKind::healed) sink_(record(Kind::heal, raft::kNobody));
  if (node == nullptr) return;
  const Duration length(static_cast<std::int64_t>(line.numbers[0]));
  switch (line.kind) {
    case TraceKind::started: {
      Record started = record(Kind::start, id);
      started.number = line.numbers[0];
      sink_(started);
      node->seen.clear();
      return;
    }
    case TraceKind::crashed:
      for (auto& [group, watch] : node->watches) watch.crashed();
      node->stopped = false;
      sink_(record(Kind::crash, id));
      return;
    case TraceKind::failed: sink_(record(Kind::fail, id)); return;
    case TraceKind::paused:
    case TraceKind::suspended: {
      const bool suspend = line.kind == TraceKind::suspended;
      Record stopped = record(suspend ? Kind::suspend : Kind::pause, id);
      stopped.until = now() + length;
      if (!suspend) stopped.what = line.numbers[1] != 0 ? "ordering_thread" : "process";
      node->stopped = true;
      sink_(stopped);
      return;
    }
    case TraceKind::resumed:
      if (node->stopped) sink_(record(Kind::resume, id));
      node->stopped = false;
      return;
    case TraceKind::blocked:
    case TraceKind::unblocked: link(line); return;
    case TraceKind::rates_changed: rates(line); return;
    case TraceKind::space: {
      Record space = record(Kind::disk, id);
      space.what = line.numbers[0] == 0 ? "full" : "has_space";
      sink_(space);
      return;
    }
    default: return;
  }
}

void Recorder::rates(const TraceLine& line) {
  Record changed = record(Kind::clock, raft::NodeId(line.node));
  changed.holder_ppm = static_cast<std::int64_t>(line.numbers[0]);
  changed.promise_ppm = static_cast<std::int64_t>(line.numbers[1]);
  sink_(changed);
  Watched* node = watched(changed.node);
  if (!node->node->up()) return;
  for (const raft::GroupId group : node->seen) {
    const raft::Core* core = core_of(*node->node, group);
    if (core == nullptr) continue;
    node->watches.at(group).rates_changed(now(), *core, node->node->clock().true_time());
  }
}

// A link may be cut for several reasons at once.
void Recorder::link(const TraceLine& line) {
  const bool cut = line.kind == TraceKind::blocked;
  Record changed = record(cut ? Kind::cut : Kind::join, raft::NodeId(line.node));
  changed.peer = raft::NodeId(line.numbers[0]);
  int& cuts = cuts_[{changed.node, changed.peer}];
  const bool told = cut ? cuts == 0 : cuts == 1;
  cuts = std::max(0, cuts + (cut ? 1 : -1));
  if (told) sink_(changed);
}

void Recorder::message(TraceKind kind, raft::NodeId node, raft::NodeId peer,
                       const wire::PeerMessage& message) {
  Watched* sender = watched(node);
  const bool sent = kind == TraceKind::sent;
  const bool lost = kind == TraceKind::lost;
  const Kind how = sent ? Kind::sent : lost ? Kind::lost : Kind::delivered;
  std::optional<Record> record = record_of_message(now(), how, node, peer, message);
  if (!record || sender == nullptr) return;
  Record told = std::move(*record);
  if (sent) {
    const auto watch = sender->watches.find(message.group);
    const auto* what = std::get_if<raft::Message>(&message.payload);
    if (what != nullptr && watch != sender->watches.end()) watch->second.sent(now(), *what);
    std::deque<Sent>& waiting = sent_[{node, peer}];
    if (waiting.size() == kSentMax) waiting.pop_front();
    waiting.push_back({message, now()});
    return sink_(told);
  }
  if (kind == TraceKind::replayed) told.text = "an old frame again: " + told.text;
  std::deque<Sent>& waiting = sent_[lost ? Link(node, peer) : Link(peer, node)];
  const auto found = std::find_if(waiting.begin(), waiting.end(),
                                  [&message](const Sent& one) { return one.message == message; });
  if (found != waiting.end()) {
    told.from = found->at;
    // The second copy of a duplicate has no instant of sending.
    waiting.erase(found);
  }
  sink_(told);
}

void Recorder::event(const raft::Event& event) {
  std::optional<Record> told = story::record_of(now(), event);
  if (!told) return;
  told->group = told_group(event.group);
  sink_(*told);
}

void Recorder::turn(const SimNode& node) {
  Watched* seen = watched(node.id());
  if (seen == nullptr || !node.up()) return;
  for (const auto& watch : seen->watches) {
    observe(*seen, watch.first, core_of(node, watch.first));
  }
}

void Recorder::observe(Watched& node, raft::GroupId group, const raft::Core* core) {
  // The story of an earlier version is its messages and events alone.
  if (core == nullptr) return;
  const story::TrueTime& time = node.node->clock().true_time();
  story::CoreWatch& watch = node.watches.at(group);
  if (node.seen.insert(group).second) watch.started(now(), *core, time);
  watch.observe(now(), *core, time);
}

void Recorder::answered(const SimNode& node, const Operation& operation, bool done, bool refused,
                        const char* basis) {
  const bool write = operation.kind == OperationKind::write;
  const char* failure = refused ? "refused" : "unknown";
  Record told = record(write ? Kind::write : Kind::read, node.id());
  told.text = text_of(operation);
  if (write) {
    told.what = done ? "done" : failure;
  } else {
    told.what = basis;
    if (!done) told.why = failure;
  }
  sink_(told);
}

}  // namespace leasehold::sim
