#include <leasehold/story/timeline_signs.h>

#include <fmt/format.h>

namespace leasehold::story {

SignWords words_of(const Record& r) {
  const std::string peer = short_name(r.peer, r.group);
  switch (r.kind) {
    case Kind::vote:
      if (r.what == "pre_vote") return {"", "", "would vote for " + peer};
      return {"", "votes for " + peer, "votes for " + peer};
    case Kind::refusal:
      return {"red", fmt::format("refuses {}{}", peer, r.why == "promised" ? ": bound" : ""),
              fmt::format("{}{}: {}",
                          r.what == "pre_vote" ? "refuses a pre-vote to " : "refuses its vote to ",
                          peer, r.why)};
    case Kind::crash: return {"red", "crash", ""};
    case Kind::notice: return {"", "knows the end of " + peer, ""};
    case Kind::start: return {"muted", "restart", ""};
    case Kind::fail: return {"red", "disk failed", ""};
    case Kind::disk:
      if (r.what == "full") return {"red", "disk full", ""};
      if (r.what == "has_space") return {"muted", "disk has space", ""};
      return {"red", r.what == "stalls" ? "disk stalls" : "disk synced", ""};
    // These are frequent: a sign without a label.
    case Kind::log_cut: return {"", "", fmt::format("cuts its log up to {}", r.index.value())};
    case Kind::snapshot:
      if (r.what == "sending") return {"muted", "snapshot to " + peer, ""};
      return {"", fmt::format("snapshot up to {}", r.index.value()), ""};
    case Kind::members:
      if (r.what == "changed") return {"", r.text, ""};
      return {"", "", fmt::format("the members of entry {} are committed", r.index.value())};
    case Kind::transfer:
      if (r.what == "token") return {"muted", "transfers the leadership to " + peer, ""};
      return {"", "", "transfer " + r.what};
    case Kind::cut: return {"red", "cut from " + peer, ""};
    case Kind::join: return {"muted", "hears " + peer, ""};
    case Kind::lease_lost: return {"red", "lease given up", ""};
    case Kind::clock: {
      const std::int64_t ppm = r.holder_ppm;
      const std::int64_t size = (ppm < 0 ? -ppm : ppm) / 1000;
      return {"red",
              fmt::format("clocks {}{}{} %", ppm < 0 ? "-" : "+", size / 10,
                          size % 10 != 0 ? fmt::format(".{}", size % 10) : ""),
              ""};
    }
    default: return {"", "", ""};
  }
}

ReadSign read_sign(const Record& r) {
  if (r.kind == Kind::write) return {"calm", "W", "write"};
  if (!r.why.empty()) return {"r-none", "!", "read refused"};
  if (r.what == "lease") return {"r-lease", "L", "read by lease"};
  if (r.what == "off_thread") return {"r-lease", "O", "read by lease, off the ordering thread"};
  if (r.what == "quorum") return {"r-quorum", "Q", "read after a quorum's confirmation"};
  if (r.what == "log") return {"r-log", "G", "read through the log"};
  return {"r-leader", "F", "follower's read with its leader's index"};
}

bool is_read(const Record& r) {
  return r.kind == Kind::read || (r.kind == Kind::write && r.what == "done");
}

std::string cross(Tenths x, Tenths y) {
  return fmt::format("M{}L{}M{}L{}", Svg::at(x - 38, y - 38), Svg::at(x + 38, y + 38),
                     Svg::at(x - 38, y + 38), Svg::at(x + 38, y - 38));
}

std::string diamond(Tenths x, Tenths y) {
  return fmt::format("M{}L{}L{}L{}Z", Svg::at(x, y - 50), Svg::at(x + 50, y), Svg::at(x, y + 50),
                     Svg::at(x - 50, y));
}

Tenths draw_legend(Svg& svg, Tenths left, Tenths right, Tenths y,
                   const std::vector<ReadSign>& reads) {
  Tenths at = left;
  const auto next = [&](const std::string& words) {
    const Tenths width = Svg::text_width(words) + 420;
    if (at + width > right && at > left) {
      at = left;
      y += 200;
    }
    const Tenths here = at;
    at += width;
    svg.text("muted", here + 260, y + 40, words);
    return here;
  };
  const auto bar = [&](const char* style, const std::string& words) {
    if (!svg.uses(style)) return;
    const Tenths here = next(words);
    svg.rect(style, here, y - 50, 200, 100, 20);
  };
  const auto stroke = [&](const char* style, const std::string& words) {
    if (!svg.uses(style)) return;
    const Tenths here = next(words);
    svg.line(style, here, y, here + 200, y);
  };
  bar("lease", "lease, as its holder sees it");
  bar("promise", "promise: elects nobody else (ticks: renewed)");
  bar("leader", "leader");
  bar("candidate", "candidate");
  bar("pre_candidate", "pre-candidate");
  bar("follower", "follower");
  stroke("ack", "the append and the acknowledgement that moved a lease's end");
  stroke("counted", "counted from the round's begin");
  stroke("ask", "asks for a vote");
  stroke("answer", "answer");
  stroke("append", "append");
  stroke("reply", "reply");
  stroke("lost", "lost");
  if (svg.uses("yes")) {
    const Tenths here = next("vote granted (small: a pre-vote)");
    svg.circle("yes", here + 100, y, 45);
  }
  if (svg.uses("no")) {
    const Tenths here = next("vote refused");
    svg.path("no", cross(here + 100, y));
  }
  if (svg.uses("fault")) {
    const Tenths here = next("fault");
    svg.path("fault", diamond(here + 100, y));
  }
  for (const ReadSign& sign : reads) {
    const Tenths here = next(sign.words);
    svg.circle(sign.style, here + 100, y, 65);
    svg.text("on bold mid", here + 100, y + 38, sign.letter);
  }
  return y + 200;
}

}  // namespace leasehold::story
