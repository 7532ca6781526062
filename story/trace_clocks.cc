#include <leasehold/base/assert.h>
#include <leasehold/story/trace_clocks.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <queue>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace leasehold::story {
namespace {

using Ns = std::int64_t;

/// No bound. Sums of bounds stay far from it: instants are within hours of their part's beginning.
constexpr Ns kNoBound = std::numeric_limits<Ns>::min() / 4;
/// A clock that is this much too fast or too slow is taken for one that has leapt.
constexpr double kRateMax = 0.5;

// ---- Which records are of one message ----

/// Where the records of one content stand, by part and place.
struct Content {
  std::vector<std::pair<std::size_t, std::size_t>> sent, delivered;
};

std::string content_of(NodeId from, NodeId to, const Record& record) {
  return fmt::format("{}>{} {} {} {} {} {} {}", from.value(), to.value(), record.what, record.why,
                     record.term.value(), record.round.value(), record.index.value(), record.text);
}

std::unordered_map<std::string, Content> contents_of(const ClusterTrace& trace) {
  std::unordered_map<std::string, Content> contents;
  for (std::size_t part = 0; part < trace.parts.size(); ++part) {
    const std::vector<Record>& records = trace.parts[part].records;
    for (std::size_t place = 0; place < records.size(); ++place) {
      const Record& record = records[place];
      if (record.kind == Kind::sent) {
        contents[content_of(record.node, record.peer, record)].sent.emplace_back(part, place);
      } else if (record.kind == Kind::delivered) {
        contents[content_of(record.peer, record.node, record)].delivered.emplace_back(part, place);
      }
    }
  }
  return contents;
}

// ---- Bounds ----

/// A message, or the half of a probe: what was sent at one participant's instant arrived at the
/// other's. Instants count from the beginning of each one's part.
struct Way {
  std::size_t from = 0, to = 0;
  Ns sent = 0, arrived = 0;
};

struct Participant {
  Ns begin = 0;
  double rate = 0;

  Ns own(Duration at) const { return at.count() - begin; }
};

Ns stretched(Ns own, double rate) {
  return own + std::llround(static_cast<double>(own) * rate);
}

/// low[i][j]: the offset of j exceeds that of i by this at least.
using Bounds = std::vector<std::vector<Ns>>;

Bounds bounds_of(const std::vector<Participant>& all, const std::vector<Way>& ways) {
  Bounds low(all.size(), std::vector<Ns>(all.size(), kNoBound));
  for (const Way& way : ways) {
    const Ns least =
        stretched(way.sent, all[way.from].rate) - stretched(way.arrived, all[way.to].rate);
    low[way.from][way.to] = std::max(low[way.from][way.to], least);
  }
  for (std::size_t i = 0; i < all.size(); ++i) low[i][i] = std::max<Ns>(low[i][i], 0);
  return low;
}

/// Adds what follows from chains of bounds. False: they contradict each other.
bool close(Bounds& low) {
  for (std::size_t k = 0; k < low.size(); ++k) {
    for (std::size_t i = 0; i < low.size(); ++i) {
      if (low[i][k] == kNoBound) continue;
      for (std::size_t j = 0; j < low.size(); ++j) {
        if (low[k][j] != kNoBound) low[i][j] = std::max(low[i][j], low[i][k] + low[k][j]);
      }
      if (low[i][i] > 0) return false;
    }
  }
  return true;
}

/// Parts of one machine have one clock. False: nothing to add.
bool add_shared(const ClusterTrace& trace, const std::vector<Participant>& all, Bounds& low) {
  bool any = false;
  const Ns far = kTraceSpanMax.count();
  for (std::size_t i = 0; i < trace.parts.size(); ++i) {
    for (std::size_t j = 0; j < trace.parts.size(); ++j) {
      const Ns apart = all[j].begin - all[i].begin;
      const bool same = i != j && !trace.parts[i].machine.empty() &&
                        trace.parts[i].machine == trace.parts[j].machine;
      if (!same || apart > far || apart < -far) continue;
      low[i][j] = std::max(low[i][j], apart);
      any = true;
    }
  }
  return any;
}

/// The middle of the bounds from each participant that is placed to `next`. `low` is closed, so
/// any value within them can be completed.
Ns place(const Bounds& low, const std::vector<std::optional<Ns>>& offsets, std::size_t next) {
  Ns least = kNoBound;
  Ns most = -kNoBound;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    if (!offsets[i]) continue;
    if (low[i][next] != kNoBound) least = std::max(least, *offsets[i] + low[i][next]);
    if (low[next][i] != kNoBound) most = std::min(most, *offsets[i] - low[next][i]);
  }
  if (least == kNoBound && most == -kNoBound) return 0;
  // What is sent at one instant arrives at a later one.
  if (least == kNoBound) return most - 1;
  if (most == -kNoBound) return least + 1;
  return least + (most - least) / 2;
}

// ---- Rates ----

/// The room between the bounds of an offset, if the clock runs at a rate; below 0: there is none.
struct Room {
  const std::vector<Way>& ways;
  const std::vector<Participant>& all;
  std::size_t known, next;

  Ns at(double rate) const {
    Ns least = kNoBound;
    Ns most = -kNoBound;
    for (const Way& way : ways) {
      if (way.from == known && way.to == next) {
        least =
            std::max(least, stretched(way.sent, all[known].rate) - stretched(way.arrived, rate));
      } else if (way.from == next && way.to == known) {
        most = std::min(most, stretched(way.arrived, all[known].rate) - stretched(way.sent, rate));
      }
    }
    return most - least;
  }
};

/// 0 if that is possible; else the rate that leaves most room. The room is concave in the rate.
double rate_of(const Room& room) {
  if (room.at(0) >= 0) return 0;
  double least = -kRateMax;
  double most = kRateMax;
  for (int step = 0; step < 80; ++step) {
    const double one = least + (most - least) / 3;
    const double other = most - (most - least) / 3;
    if (room.at(one) < room.at(other)) {
      least = one;
    } else {
      most = other;
    }
  }
  return (least + most) / 2;
}

/// Rates against the first participant, along the links that have messages both ways.
void find_rates(std::vector<Participant>& all, const std::vector<Way>& ways) {
  std::map<std::pair<std::size_t, std::size_t>, std::vector<Way>> links;
  for (const Way& way : ways) {
    links[{std::min(way.from, way.to), std::max(way.from, way.to)}].push_back(way);
  }
  std::vector<bool> found(all.size(), false);
  std::queue<std::size_t> waiting;
  waiting.push(0);
  found[0] = true;
  while (!waiting.empty()) {
    const std::size_t known = waiting.front();
    waiting.pop();
    for (std::size_t next = 0; next < all.size(); ++next) {
      const auto link = links.find({std::min(known, next), std::max(known, next)});
      if (found[next] || link == links.end()) continue;
      const bool both = std::any_of(link->second.begin(), link->second.end(),
                                    [&](const Way& way) { return way.from == known; }) &&
                        std::any_of(link->second.begin(), link->second.end(),
                                    [&](const Way& way) { return way.from == next; });
      if (!both) continue;
      all[next].rate = rate_of({link->second, all, known, next});
      found[next] = true;
      waiting.push(next);
    }
  }
}

/// Of each link and direction those that can bound anything, at whatever rates: the hull of its
/// points towards early arrivals of what was sent late.
std::vector<Way> decisive(std::vector<Way> ways) {
  std::sort(ways.begin(), ways.end(), [](const Way& a, const Way& b) {
    return std::tie(a.from, a.to, a.arrived, a.sent) < std::tie(b.from, b.to, b.arrived, b.sent);
  });
  const auto below = [](const Way& a, const Way& b, const Way& c) {
    return static_cast<double>(b.arrived - a.arrived) * static_cast<double>(c.sent - a.sent) >=
           static_cast<double>(c.arrived - a.arrived) * static_cast<double>(b.sent - a.sent);
  };
  std::vector<Way> hull;
  std::size_t first = 0;  // of this link
  for (const Way& way : ways) {
    if (!hull.empty() && (hull.back().from != way.from || hull.back().to != way.to)) {
      first = hull.size();
    }
    while (hull.size() >= first + 2 && below(hull[hull.size() - 2], hull.back(), way)) {
      hull.pop_back();
    }
    hull.push_back(way);
  }
  return hull;
}

/// From `start` hop by hop until there again.
std::vector<Way> circle_at(std::size_t start, const std::vector<std::vector<std::size_t>>& hop,
                           const std::vector<std::vector<const Way*>>& direct) {
  std::vector<Way> circle;
  for (std::size_t at = start; circle.size() <= hop.size();) {
    const std::size_t next = hop[at][start];
    if (next == hop.size() || direct[at][next] == nullptr) return {};
    circle.push_back(*direct[at][next]);
    at = next;
    if (at == start) return circle;
  }
  return {};
}

/// Messages in a circle that arrive, each before the next is sent, so that the last arrives before
/// the first was sent: at these rates. Empty: there is no such circle.
std::vector<Way> contradiction(const std::vector<Participant>& all, const std::vector<Way>& ways) {
  const std::size_t count = all.size();
  Bounds low(count, std::vector<Ns>(count, kNoBound));
  std::vector<std::vector<const Way*>> direct(count, std::vector<const Way*>(count, nullptr));
  std::vector<std::vector<std::size_t>> hop(count, std::vector<std::size_t>(count, count));
  for (const Way& way : ways) {
    const Ns least =
        stretched(way.sent, all[way.from].rate) - stretched(way.arrived, all[way.to].rate);
    if (least <= low[way.from][way.to]) continue;
    low[way.from][way.to] = least;
    direct[way.from][way.to] = &way;
    hop[way.from][way.to] = way.to;
  }
  for (std::size_t k = 0; k < count; ++k) {
    for (std::size_t i = 0; i < count; ++i) {
      if (low[i][k] == kNoBound) continue;
      for (std::size_t j = 0; j < count; ++j) {
        if (low[k][j] == kNoBound || low[i][k] + low[k][j] <= low[i][j]) continue;
        low[i][j] = low[i][k] + low[k][j];
        hop[i][j] = hop[i][k];
      }
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (low[i][i] > 0) return circle_at(i, hop, direct);
    }
  }
  return {};
}

/// Rates that fit two clocks may contradict a third one. Each contradiction is a half of the space
/// of rates: step onto its edge, and look for the next one. The first clock keeps its rate.
void settle_rates(std::vector<Participant>& all, const std::vector<Way>& ways) {
  constexpr int kStepsMax = 2000;
  constexpr double kMarginNs = 2000;
  for (int step = 0; step < kStepsMax; ++step) {
    const std::vector<Way> circle = contradiction(all, ways);
    if (circle.empty()) return;
    double excess = kMarginNs;
    std::vector<double> slope(all.size(), 0);
    for (const Way& way : circle) {
      excess += static_cast<double>(stretched(way.sent, all[way.from].rate) -
                                    stretched(way.arrived, all[way.to].rate));
      slope[way.from] += static_cast<double>(way.sent);
      slope[way.to] -= static_cast<double>(way.arrived);
    }
    double steepness = 0;
    for (std::size_t i = 1; i < all.size(); ++i) steepness += slope[i] * slope[i];
    if (steepness < 1) return;
    for (std::size_t i = 1; i < all.size(); ++i) {
      const double rate = all[i].rate - excess * slope[i] / steepness;
      all[i].rate = std::clamp(rate, -kRateMax, kRateMax);
    }
  }
}

// ---- All of it ----

/// The parts, and behind them the program that asked.
std::vector<Participant> participants_of(const ClusterTrace& trace) {
  std::vector<Participant> all;
  all.reserve(trace.parts.size() + 1);
  std::optional<Duration> asked;
  for (const TracePart& part : trace.parts) {
    all.push_back({part.begin.count(), 0});
    if (!asked && !part.probes.empty()) asked = part.probes.front().asked;
  }
  all.push_back({asked.value_or(Duration(0)).count(), 0});
  return all;
}

std::vector<Way> ways_of(const ClusterTrace& trace, const std::vector<Participant>& all,
                         const std::vector<Passage>& sure) {
  std::vector<Way> ways;
  ways.reserve(sure.size());
  for (const Passage& one : sure) {
    ways.push_back({one.from_part, one.to_part,
                    all[one.from_part].own(trace.parts[one.from_part].records[one.sent].at),
                    all[one.to_part].own(trace.parts[one.to_part].records[one.delivered].at)});
  }
  const std::size_t asker = trace.parts.size();
  for (std::size_t part = 0; part < asker; ++part) {
    for (const TraceProbe& probe : trace.parts[part].probes) {
      const Ns shown = all[part].own(probe.shown);
      ways.push_back({asker, part, all[asker].own(probe.asked), shown});
      ways.push_back({part, asker, shown, all[asker].own(probe.answered)});
    }
  }
  return ways;
}

/// Of the messages alone, with true clocks: over a time in which they drift the bounds may cross.
std::vector<ClockPair> pairs_of(const std::vector<Participant>& all, const std::vector<Way>& ways) {
  std::map<std::pair<std::size_t, std::size_t>, ClockPair> pairs;
  for (const Way& way : ways) {
    if (way.from + 1 == all.size() || way.to + 1 == all.size()) continue;
    const std::size_t one = std::min(way.from, way.to);
    const std::size_t other = std::max(way.from, way.to);
    ClockPair& pair = pairs[{one, other}];
    pair.one = one;
    pair.other = other;
    ++pair.messages;
    const Duration arrived(all[way.to].begin + way.arrived);
    const Duration sent(all[way.from].begin + way.sent);
    if (way.from == one) {
      const Duration most = arrived - sent;
      pair.high = pair.high ? std::min(*pair.high, most) : most;
    } else {
      const Duration least = sent - arrived;
      pair.low = pair.low ? std::max(*pair.low, least) : least;
    }
  }
  std::vector<ClockPair> out;
  out.reserve(pairs.size());
  for (const auto& [key, pair] : pairs) out.push_back(pair);
  return out;
}

}  // namespace

Duration PartClock::common(Duration own) const {
  return offset + Duration(stretched((own - begin).count(), rate));
}

std::vector<Passage> sure_passages(const ClusterTrace& trace) {
  std::vector<Passage> sure;
  for (const auto& [name, content] : contents_of(trace)) {
    if (content.sent.size() != 1 || content.delivered.size() != 1) continue;
    const auto& [from, sent] = content.sent.front();
    const auto& [to, delivered] = content.delivered.front();
    if (from != to) sure.push_back({from, sent, to, delivered});
  }
  return sure;
}

ClockAlignment align_clocks(const ClusterTrace& trace) {
  ClockAlignment out;
  std::vector<Participant> all = participants_of(trace);
  const std::vector<Way> ways = ways_of(trace, all, sure_passages(trace));
  out.pairs = pairs_of(all, ways);
  Bounds low = bounds_of(all, ways);
  out.shared = add_shared(trace, all, low);
  if (!close(low)) {
    // In a container the clock of one machine may show another time.
    low = bounds_of(all, ways);
    out.shared = false;
    if (!close(low)) {
      const std::vector<Way> few = decisive(ways);
      find_rates(all, few);
      settle_rates(all, few);
      low = bounds_of(all, ways);
      out.drifting = true;
      out.consistent = close(low);
    }
  }
  std::vector<std::optional<Ns>> offsets(all.size());
  for (std::size_t part = 0; part < trace.parts.size(); ++part) {
    offsets[part] = part == 0 ? 0 : place(low, offsets, part);
    PartClock clock{trace.parts[part].begin, Duration(*offsets[part]), all[part].rate, {}, {}};
    if (low[0][part] != kNoBound) clock.earliest = Duration(low[0][part]);
    if (low[part][0] != kNoBound) clock.latest = Duration(-low[part][0]);
    out.clocks.push_back(clock);
  }
  return out;
}

std::vector<Passage> passages(const ClusterTrace& trace, const ClockAlignment& alignment) {
  LEASEHOLD_ASSERT(alignment.clocks.size() == trace.parts.size());
  const auto common = [&](const std::pair<std::size_t, std::size_t>& at) {
    return alignment.clocks[at.first].common(trace.parts[at.first].records[at.second].at);
  };
  const auto earlier = [&](const auto& one, const auto& other) {
    return std::make_pair(common(one), one) < std::make_pair(common(other), other);
  };
  std::vector<Passage> found;
  for (auto& [name, content] : contents_of(trace)) {
    std::sort(content.sent.begin(), content.sent.end(), earlier);
    std::sort(content.delivered.begin(), content.delivered.end(), earlier);
    // A connection keeps the order of its messages.
    std::size_t next = 0;
    for (const auto& arrived : content.delivered) {
      if (next == content.sent.size()) break;
      const auto& sent = content.sent[next];
      if (common(sent) > common(arrived)) continue;
      found.push_back({sent.first, sent.second, arrived.first, arrived.second});
      ++next;
    }
  }
  return found;
}

}  // namespace leasehold::story
