// The picture of a timeline.

#include <leasehold/story/svg.h>
#include <leasehold/story/timeline.h>
#include <leasehold/story/timeline_choice.h>
#include <leasehold/story/timeline_signs.h>

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace leasehold::story {
namespace {

// In tenths of a pixel.
constexpr Tenths kLeft = 960;
constexpr Tenths kRight = 240;
constexpr Tenths kTitleY = 300;
constexpr Tenths kMarksY = 560;
constexpr Tenths kRow = 140;
constexpr Tenths kReads = 200;
constexpr Tenths kTie = 80;  ///< one of the rows between an acknowledgement and the edge it moves
constexpr Tenths kBar = 160;
constexpr Tenths kRibbon = 200;
constexpr Tenths kLaneGap = 80;

constexpr std::size_t kTieRows = 3;

/// Rows of labels, filled from the left.
class Rows {
 public:
  explicit Rows(std::size_t rows) : ends_(rows, -100'000) {}
  /// The row in which a label of this width fits at `x`; the number of rows if none does.
  std::size_t place(Tenths x, Tenths width) {
    for (std::size_t row = 0; row < ends_.size(); ++row) {
      if (x < ends_[row]) continue;
      ends_[row] = x + width + 80;
      used_ = std::max(used_, row + 1);
      return row;
    }
    return ends_.size();
  }
  std::size_t used() const { return used_; }

 private:
  std::vector<Tenths> ends_;
  std::size_t used_ = 0;
};

struct Label {
  Tenths x = 0;
  std::size_t row = 0;
  std::string style;
  std::string words;
};

/// Where the parts of a lane are.
struct Place {
  Tenths top = 0;
  Tenths reads = 0;
  Tenths ties = 0;
  std::size_t tie_rows = 1;
  Tenths lease = 0;
  Tenths ribbon = 0;
  Tenths promise = 0;
  Tenths labels = 0;
  Tenths bottom = 0;
  std::vector<Label> signs;
};

class Painter {
 public:
  Painter(const Timeline& timeline, const TimelineOptions& options)
      : t_(timeline),
        width_(options.width * 10),
        right_(width_ - kRight),
        axis_(timeline.from, timeline.until, kLeft, right_),
        choice_(choose(timeline, axis_)) {}

  std::string paint() {
    const Tenths lanes_top = header();
    place_lanes(lanes_top);
    const Tenths lanes_end = places_.empty() ? lanes_top : places_.back().bottom;
    for (const Place& place : places_) {
      svg_.rect("lane", 0, place.top, width_, place.bottom - place.top);
    }
    grid(lanes_top, lanes_end);
    mark_lines(lanes_top, lanes_end);
    for (std::size_t i = 0; i < t_.lanes.size(); ++i) bars(t_.lanes[i], places_[i]);
    for (const Record* message : choice_.messages) draw_message(*message);
    for (std::size_t i = 0; i < t_.lanes.size(); ++i) ties(t_.lanes[i], places_[i]);
    for (std::size_t i = 0; i < t_.lanes.size(); ++i) signs(t_.lanes[i], places_[i]);
    const Tenths end = draw_legend(svg_, kLeft, right_, lanes_end + 460, read_signs());
    return svg_.finish(width_, end, t_.title);
  }

 private:
  Tenths x(Duration at) const { return axis_.x(at); }
  bool seen(Duration at) const { return axis_.seen(at); }
  bool seen(Duration from, Duration until) const { return axis_.seen(from, until); }
  const Place& place(NodeId node, GroupId group) const { return places_[t_.lane(node, group)]; }

  // ---- Frame ----

  Tenths header() {
    svg_.text("title", 200, kTitleY, t_.title);
    Rows rows(3);
    for (const Record& mark : t_.marks) {
      if (!seen(mark.at)) continue;
      const Tenths width = Svg::text_width(mark.text);
      const Tenths at = std::min(x(mark.at) - width / 2, right_ - width + 100);
      const std::size_t row = rows.place(at, width);
      if (row == 3) continue;
      marks_.push_back({x(mark.at), row, "bold", mark.text});
      svg_.text("bold", std::max<Tenths>(at, 100), kMarksY + static_cast<Tenths>(row) * kRow,
                mark.text);
    }
    return kMarksY + static_cast<Tenths>(std::max<std::size_t>(rows.used(), 1)) * kRow - 60;
  }

  void mark_lines(Tenths top, Tenths end) {
    for (const Label& mark : marks_) {
      const Tenths from = kMarksY + static_cast<Tenths>(mark.row) * kRow + 30;
      svg_.line("mark", mark.x, std::min(from, top), mark.x, end + 60);
    }
  }

  void grid(Tenths top, Tenths end) {
    const std::int64_t span = (t_.until - t_.from).count();
    const std::int64_t wanted = std::max<std::int64_t>(1, span / ((right_ - kLeft) / 900));
    std::int64_t step = 1;
    for (const int factor : {2, 5, 10}) {
      for (std::int64_t s = factor; s <= span; s *= 10) {
        if (s >= wanted && (step < wanted || s < step)) step = s;
      }
    }
    const std::int64_t first = (t_.from.count() + step - 1) / step * step;
    svg_.line("axis", kLeft, end + 60, right_, end + 60);
    for (std::int64_t at = first; at <= t_.until.count(); at += step) {
      const Tenths where = x(Duration(at));
      svg_.line("grid", where, top, where, end);
      svg_.line("axis", where, end + 60, where, end + 100);
      svg_.text("muted mid", where, end + 230, axis_label(at, step));
    }
    svg_.text("muted", 200, end + 230, "true time");
  }

  static std::string axis_label(std::int64_t at, std::int64_t step) {
    if (step < 1'000'000'000) return format_time(Duration(at));
    return fmt::format("{}s", at / 1'000'000'000);
  }

  // ---- Lanes ----

  void place_lanes(Tenths top) {
    for (const Lane& lane : t_.lanes) {
      Place place;
      place.top = top;
      Tenths y = top + 100;
      const auto in_view = [this](const auto& window) {
        return seen(window_start(window), window.until);
      };
      const bool reads = std::any_of(lane.signs.begin(), lane.signs.end(),
                                     [this](const Record& r) { return is_read(r) && seen(r.at); });
      if (reads) {
        place.reads = y + 80;
        y += kReads;
      }
      if (std::any_of(lane.leases.begin(), lane.leases.end(), in_view)) {
        place.tie_rows = std::clamp<std::size_t>(tied_in(lane), 1, kTieRows);
        place.ties = y + 60;
        y += 60 + kTie * static_cast<Tenths>(place.tie_rows);
        place.lease = y;
        y += kBar + 60;
      }
      place.ribbon = y;
      y += kRibbon;
      if (std::any_of(lane.promises.begin(), lane.promises.end(), in_view)) {
        place.promise = y + 60;
        y += kBar + 60;
      }
      place.labels = y + 130;
      Rows rows(3);
      for (const Record& r : lane.signs) {
        const SignWords words = words_of(r);
        if (!seen(r.at) || words.label.empty()) continue;
        const Tenths width = Svg::text_width(words.label);
        const Tenths at = std::min(x(r.at) - 30, right_ - width + 180);
        const std::size_t row = rows.place(at, width);
        if (row < 3) place.signs.push_back({at, row, words.style, words.label});
      }
      y += rows.used() == 0 ? 0 : static_cast<Tenths>(rows.used()) * kRow + 40;
      place.bottom = y + 120;
      top = place.bottom + kLaneGap;
      places_.push_back(std::move(place));
    }
  }

  std::size_t tied_in(const Lane& lane) const {
    std::size_t count = 0;
    for (const LeaseWindow& window : lane.leases) {
      for (const LeaseEdge& edge : window.edges) count += choice_.tied.count(&edge);
    }
    return count;
  }

  static Duration window_start(const PromiseWindow& w) { return w.given; }
  static Duration window_start(const LeaseWindow& w) { return w.shown; }

  /// The first of the texts that fits between the ends.
  void inside(const std::string& style, Tenths from, Tenths until, Tenths y,
              const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      if (until - from < Svg::text_width(text) + 100) continue;
      svg_.text(style, from + 60, y, text);
      return;
    }
  }

  void bars(const Lane& lane, const Place& place) {
    svg_.text("name", 200, place.ribbon + 145, node_name(lane.node, lane.group));
    for (const RoleSpan& span : lane.roles) ribbon(span, lane, place);
    for (const RoleSpan& stop : lane.stops) {
      if (!seen(stop.from, stop.until)) continue;
      const Tenths from = x(stop.from);
      svg_.rect(
          "stop", from, place.ribbon - 30, x(stop.until) - from, kRibbon + 60, 20,
          fmt::format("{} {} to {}", stop.what, format_time(stop.from), format_time(stop.until)));
    }
    for (const PromiseWindow& window : lane.promises) promise(window, lane, place);
    for (const LeaseWindow& window : lane.leases) {
      if (!seen(window.shown, window.until)) continue;
      const Tenths from = x(window.shown);
      const Tenths until = x(window.until);
      const std::string ends = "lease until " + format_time(window.until);
      svg_.rect("lease", from, place.lease, until - from, kBar, 30,
                fmt::format("lease of term {}, {} to {}", window.term.value(),
                            format_time(window.shown), format_time(window.until)));
      // Behind the last line that crosses the bar.
      Tenths free = from;
      for (const LeaseEdge& edge : window.edges) {
        if (choice_.tied.count(&edge) != 0) free = std::max({free, x(edge.at), x(edge.began)});
      }
      inside("on", free, until, place.lease + 118, {ends, "lease"});
    }
  }

  /// Where words of this width may begin without a sign of the ribbon in them.
  Tenths clear_of_signs(const Lane& lane, Tenths from, Tenths width) const {
    for (const Record& r : lane.signs) {
      if (!seen(r.at) || is_read(r) || r.kind == Kind::write || r.kind == Kind::join) continue;
      const Tenths sign = x(r.at);
      if (sign + 60 > from && sign < from + width + 120) from = sign + 20;
    }
    return from;
  }

  void ribbon(const RoleSpan& span, const Lane& lane, const Place& place) {
    if (!seen(span.from, span.until) || span.until <= span.from) return;
    const Tenths from = x(span.from);
    const Tenths until = x(span.until);
    const std::uint64_t term = span.term.value();
    if (span.what == "down") {
      svg_.line("down", from, place.ribbon + kRibbon / 2, until, place.ribbon + kRibbon / 2);
      inside("muted", from, until, place.ribbon + 70, {"down"});
      return;
    }
    const std::string name = span.what == "pre_candidate" ? "pre-candidate" : span.what;
    svg_.rect(span.what, from, place.ribbon, std::max<Tenths>(until - from, 10), kRibbon, 0,
              fmt::format("{}, term {}, {} to {}", name, term, format_time(span.from),
                          format_time(span.until)));
    std::vector<std::string> texts = {fmt::format("{}, term {}", name, term), name};
    if (name == "pre-candidate") texts = {name};
    if (span.term == Term() && name != "pre-candidate") texts = {name};
    const char* style = name == "leader" ? "on bold" : name == "follower" ? "muted" : "dark";
    const Tenths free = clear_of_signs(lane, from, Svg::text_width(texts.front()));
    inside(style, free, until, place.ribbon + 138, texts);
  }

  void promise(const PromiseWindow& window, const Lane& lane, const Place& place) {
    if (!seen(window.given, window.until)) return;
    const Tenths from = x(window.given);
    const Tenths until = x(window.until);
    const std::string holder = "promise to " + short_name(window.holder, lane.group);
    const std::string ends = " until " + format_time(window.until);
    svg_.rect(window.restarted ? "promise again" : "promise", from, place.promise,
              std::max<Tenths>(until - from, 10), kBar, 30,
              fmt::format("{}, term {}, {} to {}{}", holder, window.term.value(),
                          format_time(window.given), format_time(window.until),
                          window.restarted ? ", in full after a restart" : ""));
    Tenths last = from;
    for (const Duration renewal : window.renewals) {
      if (!seen(renewal) || x(renewal) - last < 30) continue;
      last = x(renewal);
      svg_.line("renewal", last, place.promise + 20, last, place.promise + kBar - 20);
    }
    // Renewals are ticks in the bar; the words stand behind the last one.
    if (window.restarted) {
      inside("", from, until, place.promise + 118,
             {fmt::format("{}, in full after the restart,{}", holder, ends), holder + ", in full",
              holder});
    } else {
      inside("", last, until, place.promise + 118, {holder + ends, holder});
    }
  }

  // ---- Messages and what they move ----

  void draw_message(const Record& m) {
    const bool lost = m.kind == Kind::lost;
    // A lost message is recorded where it was sent.
    const NodeId from = lost ? m.node : m.peer;
    const NodeId to = lost ? m.peer : m.node;
    const bool down = from < to;
    const Tenths y1 = place(from, m.group).ribbon + (down ? kRibbon : 0);
    const Tenths y2 = place(to, m.group).ribbon + (down ? 0 : kRibbon);
    const Tenths x1 = x(*m.from);
    const Tenths x2 = x(m.at);
    const std::string title = fmt::format("{}: {}", m.what, m.text);
    if (lost) {
      // It leaves its sender, and ends in a cross.
      const Tenths x3 = x1 + std::clamp<Tenths>((x2 - x1) / 3, -200, 200);
      const Tenths y3 = y1 + (down ? 200 : -200);
      svg_.line("lost", x1, y1, x3, y3, title + " (lost)");
      svg_.path("lost", cross(x3, y3));
      return;
    }
    const bool reply = m.what.find("reply") != std::string::npos;
    const char* style = choice_.acks.count(&m) != 0 ? "ack"
                        : is_vote(m)                ? (reply ? "answer" : "ask")
                                                    : (reply ? "reply" : "append");
    svg_.line(style, x1, y1, x2, y2, title);
  }

  /// From the acknowledgement's arrival up, and along to the edge that it moves; dotted from where
  /// the round began, which is what the lease is counted from.
  void ties(const Lane& lane, const Place& place) {
    std::size_t row = 0;
    const std::size_t rows = place.tie_rows;
    for (const LeaseWindow& window : lane.leases) {
      for (const LeaseEdge& edge : window.edges) {
        if (choice_.tied.count(&edge) == 0) continue;
        const Tenths y = place.ties + static_cast<Tenths>(rows - 1 - row % rows) * kTie;
        ++row;
        const Tenths began = x(edge.began);
        const Tenths arrived = x(edge.at);
        // A lease that was given up never reached its end.
        const bool reached = edge.until <= window.until;
        const Tenths end = x(std::min(edge.until, window.until));
        const std::string title = fmt::format(
            "the acknowledgement of round {} by {} moves the end of the lease "
            "to {}, counted from {}",
            edge.round.value(), node_name(edge.peer, lane.group), format_time(edge.until),
            format_time(edge.began));
        if (seen(edge.began)) {
          svg_.line("counted", began, place.ribbon, began, y);
          svg_.circle("tip", began, place.ribbon, 25);
        }
        svg_.line("counted", began, y, arrived, y);
        if (rows == 1) {
          inside("muted", began - 60, arrived + 100, y - 30,
                 {fmt::format("counted from round {}", edge.round.value()), "counted from here"});
        }
        svg_.path("edge",
                  fmt::format("M{}V{}H{}V{}", Svg::at(arrived, place.ribbon), coordinate(y),
                              coordinate(end), coordinate(place.lease - 10)),
                  title);
        if (reached && seen(edge.until)) {
          svg_.path("tip", fmt::format("M{}L{}L{}Z", Svg::at(end, place.lease),
                                       Svg::at(end - 35, place.lease - 60),
                                       Svg::at(end + 35, place.lease - 60)));
        }
      }
    }
  }

  static std::string coordinate(Tenths tenths) {
    const std::string pair = Svg::at(tenths, 0);
    return pair.substr(0, pair.find(' '));
  }

  void signs(const Lane& lane, const Place& place) {
    Tenths last_read = -1000;
    const Tenths middle = place.ribbon + kRibbon / 2;
    for (const Record& r : lane.signs) {
      if (!seen(r.at)) continue;
      const Tenths at = x(r.at);
      if (is_read(r)) {
        read(r, at, place, last_read);
      } else if (r.kind == Kind::vote) {
        svg_.circle("yes", at, middle, r.what == "vote" ? 45 : 25, words_of(r).title);
      } else if (r.kind == Kind::refusal) {
        svg_.path("no", cross(at, middle), words_of(r).title);
      } else if (r.kind == Kind::log_cut || r.kind == Kind::snapshot || r.kind == Kind::members ||
                 r.kind == Kind::transfer) {
        const SignWords words = words_of(r);
        svg_.path("calm", diamond(at, middle), words.label.empty() ? words.title : words.label);
      } else if (r.kind != Kind::write && r.kind != Kind::join) {
        const bool calm = r.kind == Kind::start || r.kind == Kind::notice;
        svg_.path(calm ? "calm" : "fault", diamond(at, middle), words_of(r).label);
      }
    }
    for (const Label& label : place.signs) {
      svg_.text(label.style + (label.style.empty() ? "halo" : " halo"), label.x,
                place.labels + static_cast<Tenths>(label.row) * kRow, label.words);
    }
  }

  void read(const Record& r, Tenths at, const Place& place, Tenths& last) {
    const ReadSign sign = read_sign(r);
    std::string title = fmt::format("{} at {}", sign.words, format_time(r.at));
    if (r.index.value() != 0) title += fmt::format(", index {}", r.index.value());
    if (at - last < 150) {
      svg_.circle(sign.style, at, place.reads + 90, 15, title);
      return;
    }
    last = at;
    svg_.circle(sign.style, at, place.reads, 65, title);
    svg_.text("on bold mid", at, place.reads + 38, sign.letter);
  }

  /// One of each kind that is drawn.
  std::vector<ReadSign> read_signs() const {
    std::set<std::string> told;
    std::vector<ReadSign> signs;
    for (const Lane& lane : t_.lanes) {
      for (const Record& r : lane.signs) {
        if (!is_read(r) || !seen(r.at)) continue;
        const ReadSign sign = read_sign(r);
        if (told.insert(sign.letter).second) signs.push_back(sign);
      }
    }
    return signs;
  }

  const Timeline& t_;
  const Tenths width_;
  const Tenths right_;
  const TimeAxis axis_;
  const Choice choice_;
  Svg svg_;
  std::vector<Place> places_;
  std::vector<Label> marks_;
};

}  // namespace

std::string draw_timeline(const Timeline& timeline, const TimelineOptions& options) {
  return Painter(timeline, options).paint();
}

}  // namespace leasehold::story
