#include <leasehold/story/timeline_choice.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace leasehold::story {
namespace {

/// Past these limits, only what matters to the story is drawn.
constexpr std::size_t kMessagesMax = 120;
constexpr std::size_t kVotesMax = 240;
constexpr Tenths kTieSpace = 300;

class Chooser {
 public:
  Chooser(const Timeline& timeline, const TimeAxis& axis) : t_(timeline), axis_(axis) {}

  Choice choose() {
    Tenths last = -kTieSpace;
    for (const Lane& lane : t_.lanes) {
      for (const LeaseWindow& window : lane.leases) {
        for (const LeaseEdge& edge : window.edges) {
          if (!axis_.seen(edge.at) || axis_.x(edge.at) - last < (crowded() ? kTieSpace : 1))
            continue;
          last = axis_.x(edge.at);
          choice_.tied.insert(&edge);
          find_path(lane, edge);
        }
      }
      last = -kTieSpace;
    }
    std::size_t messages = 0;
    std::size_t votes = 0;
    for (const Record& m : t_.messages) {
      if (!visible(m)) continue;
      ++messages;
      if (is_vote(m)) ++votes;
    }
    for (const Record& m : t_.messages) {
      if (!visible(m)) continue;
      const bool told = messages <= kMessagesMax || choice_.acks.count(&m) != 0 ||
                        (votes <= kVotesMax && is_vote(m));
      if (told) choice_.messages.push_back(&m);
    }
    return choice_;
  }

 private:
  bool visible(const Record& m) const {
    const auto drawn = [&](NodeId node) { return t_.lane(node, m.group) < t_.lanes.size(); };
    return drawn(m.node) && drawn(m.peer) && axis_.seen(*m.from, m.at);
  }

  /// Whether leases are extended too often to tie every edge to its acknowledgement.
  bool crowded() const {
    std::size_t edges = 0;
    for (const Lane& lane : t_.lanes) {
      for (const LeaseWindow& window : lane.leases) {
        for (const LeaseEdge& edge : window.edges) edges += axis_.seen(edge.at) ? 1 : 0;
      }
    }
    return edges > 12;
  }

  /// The round's append, or the beat, and the acknowledgement that came back.
  void find_path(const Lane& lane, const LeaseEdge& edge) {
    const NodeId leader = lane.node;
    const GroupId group = edge.beat ? GroupId() : lane.group;
    const std::string_view request = edge.beat ? "beat" : "append";
    const std::string_view answer = edge.beat ? "beat_reply" : "append_reply";
    const Record* reply = nullptr;
    for (const Record& m : t_.messages) {
      const bool back = m.kind == Kind::delivered && m.what == answer && m.node == leader &&
                        m.peer == edge.peer && m.group == group && m.round == edge.round;
      if (back && m.at <= edge.at && (reply == nullptr || m.at < reply->at)) reply = &m;
    }
    if (reply == nullptr) return;
    const Record* append = nullptr;
    for (const Record& m : t_.messages) {
      const bool out = m.kind == Kind::delivered && m.what == request && m.node == edge.peer &&
                       m.peer == leader && m.group == group && m.round == edge.round &&
                       m.at <= *reply->from;
      if (out && append == nullptr) append = &m;
    }
    choice_.acks.insert(reply);
    if (append != nullptr) choice_.acks.insert(append);
  }

  const Timeline& t_;
  const TimeAxis& axis_;
  Choice choice_;
};

}  // namespace

Tenths TimeAxis::x(Duration at) const {
  const Duration inside = std::min(std::max(at, from_), until_);
  // Scaled down so that hours fit 64 bits.
  const std::int64_t part = (inside - from_).count() / 16;
  const std::int64_t whole = std::max<std::int64_t>(1, (until_ - from_).count() / 16);
  return left_ + part * (right_ - left_) / whole;
}

bool is_vote(const Record& message) {
  return message.what.find("vote") != std::string::npos;
}

Choice choose(const Timeline& timeline, const TimeAxis& axis) {
  return Chooser(timeline, axis).choose();
}

}  // namespace leasehold::story
