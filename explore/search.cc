#include <leasehold/base/assert.h>
#include <leasehold/explore/search.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace leasehold::explore {
namespace {

/// A set of fingerprints with open addressing: 16 bytes a place.
class Seen {
 public:
  Seen() : places_(1U << 16U) {}

  /// False if it was there.
  bool insert(const raft::Fingerprint& print) {
    if (size_ * 2 >= places_.size()) grow();
    if (!put(places_, print)) return false;
    ++size_;
    return true;
  }
  std::size_t size() const { return size_; }

 private:
  struct Place {
    std::uint64_t high = 0;
    std::uint64_t low = 0;
  };
  static bool put(std::vector<Place>& places, const raft::Fingerprint& print) {
    const std::uint64_t low = print.low == 0 ? 1 : print.low;
    for (std::size_t i = static_cast<std::size_t>(low) & (places.size() - 1);;
         i = (i + 1) & (places.size() - 1)) {
      if (places[i].low == 0) {
        places[i] = {print.high, low};
        return true;
      }
      if (places[i].low == low && places[i].high == print.high) return false;
    }
  }
  void grow() {
    std::vector<Place> larger(places_.size() * 2);
    for (const Place& place : places_) {
      if (place.low == 0) continue;
      raft::Fingerprint print;
      print.high = place.high;
      print.low = place.low;
      put(larger, print);
    }
    places_.swap(larger);
  }

  std::vector<Place> places_;
  std::size_t size_ = 0;
};

/// How a state was reached. The states themselves are made again from their paths.
struct Origin {
  std::uint32_t parent;
  Step step;
};

/// Makes states from their paths. In the order of a search breadth first neighbours share most of
/// their paths, and that part is kept.
class Worlds {
 public:
  explicit Worlds(const Bounds& bounds) : trail_(1, World(bounds)) {}

  const World& at(const std::vector<Step>& path) {
    std::size_t shared = 0;
    while (shared < path.size() && shared < path_.size() && path_[shared] == path[shared]) {
      ++shared;
    }
    path_.resize(shared);
    trail_.erase(trail_.begin() + static_cast<std::ptrdiff_t>(shared) + 1, trail_.end());
    for (; shared < path.size(); ++shared) {
      World next = trail_.back();
      next.take(path[shared]);
      trail_.push_back(std::move(next));
      path_.push_back(path[shared]);
    }
    return trail_.back();
  }

 private:
  std::vector<World> trail_;
  std::vector<Step> path_;
};

}  // namespace

SearchReport search(const Bounds& bounds, const SearchLimits& limits,
                    const std::function<void(const SearchNews&)>& news,
                    const std::function<void(const std::vector<Step>&)>& about_to_take) {
  constexpr std::uint32_t kRoot = std::numeric_limits<std::uint32_t>::max();
  LEASEHOLD_ASSERT(limits.states_max < kRoot);
  SearchReport report;
  Worlds worlds(bounds);
  Seen seen;
  std::vector<Origin> origins;
  const auto path_to = [&origins](std::uint32_t state) {
    std::vector<Step> path;
    for (; state != kRoot; state = origins[state].parent) path.push_back(origins[state].step);
    std::reverse(path.begin(), path.end());
    return path;
  };
  const auto extend = [&](std::uint32_t parent) {
    std::vector<Step> path = parent == kRoot ? std::vector<Step>{} : path_to(parent);
    const World& world = worlds.at(path);
    for (const Step& step : world.steps()) {
      path.push_back(step);
      if (about_to_take) about_to_take(path);
      World next = world;
      next.take(step);
      ++report.news.steps;
      if (!next.violation().empty()) {
        report.path = path;
        report.violation = next.violation();
        return false;
      }
      path.pop_back();
      if (next.left() || !seen.insert(next.fingerprint())) continue;
      origins.push_back({parent, step});
      ++report.news.at_depth;
      if (origins.size() >= limits.states_max) return false;
    }
    return true;
  };
  std::size_t begin = 0;
  bool more = extend(kRoot);
  report.news.depth = 1;
  report.news.states = origins.size();
  if (news) news(report.news);
  while (more && report.news.depth < limits.depth_max) {
    const std::size_t end = origins.size();
    if (begin == end) {
      report.everything = true;
      break;
    }
    report.news.at_depth = 0;
    for (; more && begin < end; ++begin) more = extend(static_cast<std::uint32_t>(begin));
    report.news.states = origins.size();
    if (!more) break;
    ++report.news.depth;
    if (news) news(report.news);
  }
  return report;
}

}  // namespace leasehold::explore
