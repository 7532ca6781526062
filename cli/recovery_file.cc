#include <leasehold/cli/recovery_file.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

namespace leasehold::cli {
namespace {

using Json = nlohmann::json;

constexpr const char* kReportFormat = "leasehold_recovery_report";
constexpr const char* kPlanFormat = "leasehold_recovery_plan";
constexpr int kRecoveryFormat = 1;
/// A group has at most that many members, and each is there once.
constexpr std::size_t kReportsMax = raft::kMembersMax;
/// Of an index or a term: there is room behind it.
constexpr std::uint64_t kRecoveredNumberMax = std::uint64_t{1} << 61U;

std::string hex_of(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    fmt::format_to(std::back_inserter(out), "{:02x}", static_cast<unsigned char>(c));
  }
  return out;
}

std::optional<std::uint64_t> number_of_hex(std::string_view text) {
  std::uint64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  if (text.size() != 16 || read.ec != std::errc() || read.ptr != text.data() + text.size()) {
    return std::nullopt;
  }
  return number;
}

std::optional<std::string> bytes_of_hex(std::string_view text) {
  std::string out;
  if (text.size() % 2 != 0) return std::nullopt;
  for (std::size_t at = 0; at < text.size(); at += 2) {
    unsigned byte = 0;
    const auto read = std::from_chars(text.data() + at, text.data() + at + 2, byte, 16);
    if (read.ec != std::errc() || read.ptr != text.data() + at + 2) return std::nullopt;
    out.push_back(static_cast<char>(static_cast<unsigned char>(byte)));
  }
  return out;
}

Json json_of(const node::Survivor& survivor) {
  const auto log_id = [](const raft::LogId& id) {
    return Json{{"term", id.term.value()}, {"index", id.index.value()}};
  };
  std::vector<std::uint64_t> members;
  for (const raft::Member& member : survivor.membership.members) {
    members.push_back(member.id.value());
  }
  Json out{
      {"cluster", hex_text(survivor.cluster_id)},
      {"node", survivor.id.value()},
      {"uuid", hex_text(survivor.uuid.high) + hex_text(survivor.uuid.low)},
      {"base", log_id(survivor.base)},
      {"last", log_id(survivor.last)},
      {"members", members},  // for people
      {"membership", hex_of(raft::encode_membership(survivor.membership).view())},
      {"membership_index", survivor.membership_index.value()},
      {"promise_ns", survivor.promise.count()},
      {"applied", survivor.applied ? Json(survivor.applied->value()) : Json(nullptr)},
  };
  if (!survivor.applied) out["no_state"] = survivor.no_state;
  return out;
}

/// Takes fields out of an object; the first one that is wrong clears ok().
class Fields {
 public:
  explicit Fields(const Json& from) : from_(from) { ok_ = from.is_object(); }
  bool ok() const { return ok_; }

  std::uint64_t number(const char* name) {
    const Json* const found = find(name);
    ok_ = ok_ && found != nullptr && found->is_number_unsigned() &&
          found->get<std::uint64_t>() <= kRecoveredNumberMax;
    return ok_ ? found->get<std::uint64_t>() : 0;
  }
  std::string text(const char* name) {
    const Json* const found = find(name);
    ok_ = ok_ && found != nullptr && found->is_string();
    return ok_ ? found->get<std::string>() : std::string();
  }
  std::uint64_t hex(std::string_view text) {
    const auto number = number_of_hex(text);
    ok_ = ok_ && number.has_value();
    return number.value_or(0);
  }
  raft::LogId log_id(const char* name) {
    const Json* const found = find(name);
    ok_ = ok_ && found != nullptr;
    if (!ok_) return {};
    Fields fields(*found);
    const raft::LogId id{raft::Term(fields.number("term")), raft::Index(fields.number("index"))};
    ok_ = fields.ok();
    return id;
  }
  bool is_null(const char* name) {
    const Json* const found = find(name);
    return found != nullptr && found->is_null();
  }
  raft::Membership membership(const char* name) {
    const auto bytes = bytes_of_hex(text(name));
    ok_ = ok_ && bytes.has_value();
    if (!ok_) return {};
    auto decoded = raft::decode_membership(*bytes);
    ok_ = decoded.ok();
    return ok_ ? std::move(decoded).value() : raft::Membership{};
  }

 private:
  const Json* find(const char* name) const {
    if (!from_.is_object()) return nullptr;
    const auto found = from_.find(name);
    return found == from_.end() ? nullptr : &*found;
  }

  const Json& from_;
  bool ok_ = true;
};

/// None: it is no report.
std::optional<node::Survivor> survivor_of(const Json& json) {
  Fields in(json);
  node::Survivor out;
  out.cluster_id = in.hex(in.text("cluster"));
  out.id = raft::NodeId(in.number("node"));
  const std::string uuid = in.text("uuid");
  if (uuid.size() != 32) return std::nullopt;
  out.uuid = {in.hex(uuid.substr(0, 16)), in.hex(uuid.substr(16))};
  out.base = in.log_id("base");
  out.last = in.log_id("last");
  out.membership = in.membership("membership");
  out.membership_index = raft::Index(in.number("membership_index"));
  out.promise = raft::Duration(static_cast<raft::Duration::rep>(in.number("promise_ns")));
  if (in.is_null("applied")) {
    out.no_state = in.text("no_state");
  } else {
    out.applied = raft::Index(in.number("applied"));
  }
  const bool fits = in.ok() && out.id != raft::kNobody && out.cluster_id != 0 &&
                    out.base.index <= out.last.index && out.base.term <= out.last.term &&
                    out.promise <= raft::kLeaseLongest;
  return fits ? std::optional(std::move(out)) : std::nullopt;
}

Error no_report(std::string why) {
  return {ErrorCode::invalid_argument,
          std::move(why) + ": give the files that leasehold recover look or plan wrote"};
}

std::string nodes_text(const std::vector<raft::Member>& members) {
  std::string out;
  for (const raft::Member& member : members) {
    out += fmt::format("{}{} ({})", out.empty() ? "" : ", ", member.id.value(), member.address);
  }
  return out;
}

std::string lost_writes_text(const node::Survivor& source, const node::RecoveryPlan& plan) {
  const std::uint64_t last = source.last.index.value();
  if (!plan.may_lose) {
    return fmt::format(
        "  Nothing that was ever acknowledged is lost: the lost nodes alone were no majority, so\n"
        "  each acknowledged write is in the log of a survivor, and node {} has the most of it.\n",
        source.id.value());
  }
  return fmt::format(
      "  Lost: every write behind entry {}. The lost nodes may have acknowledged any number of\n"
      "  them to clients, and no survivor knows how many.\n",
      last);
}

}  // namespace

std::string hex_text(std::uint64_t number) {
  return fmt::format("{:016x}", number);
}

std::string encode_report(const node::Survivor& survivor) {
  Json out = json_of(survivor);
  out[kReportFormat] = kRecoveryFormat;
  return out.dump(2) + "\n";
}

std::string encode_plan(const std::vector<node::Survivor>& survivors) {
  Json out{{kPlanFormat, kRecoveryFormat}, {"survivors", Json::array()}};
  for (const node::Survivor& one : survivors) out["survivors"].push_back(json_of(one));
  return out.dump(2) + "\n";
}

Result<std::vector<node::Survivor>> decode_reports(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return no_report("it is no JSON object");
  const bool plan = json.contains(kPlanFormat);
  const auto format = json.find(plan ? kPlanFormat : kReportFormat);
  if (format == json.end()) return no_report("it is neither a report nor a plan");
  if (*format != kRecoveryFormat) {
    return Error{ErrorCode::unsupported_format,
                 fmt::format("its format is {}, this build knows {}: use the same build for all of "
                             "leasehold recover",
                             format->dump(), kRecoveryFormat)};
  }
  std::vector<node::Survivor> out;
  if (!plan) {
    auto one = survivor_of(json);
    if (!one) return no_report("the report is damaged");
    out.push_back(*std::move(one));
    return out;
  }
  const auto all = json.find("survivors");
  if (all == json.end() || !all->is_array() || all->empty() || all->size() > kReportsMax) {
    return no_report("the plan is damaged");
  }
  for (const Json& each : *all) {
    auto one = survivor_of(each);
    if (!one) return no_report("the plan is damaged");
    out.push_back(*std::move(one));
  }
  return out;
}

std::string loss_text(const std::vector<node::Survivor>& survivors,
                      const node::RecoveryPlan& plan) {
  const node::Survivor& source = survivors[plan.source];
  std::string out = fmt::format("Recovery {} of cluster {}\n\nWhat may be lost:\n",
                                hex_text(plan.number), hex_text(source.cluster_id));
  out += lost_writes_text(source, plan);
  if (plan.longer) {
    const node::Survivor& longer = survivors[*plan.longer];
    out += fmt::format(
        "  Among them what node {} has up to entry {} (term {}): it has no state ({}).\n",
        longer.id.value(), longer.last.index.value(), longer.last.term.value(), longer.no_state);
  }
  out += fmt::format(
      "\nWhat is kept:\n  Everything up to entry {} (term {}), of the log of node {}.\n",
      source.last.index.value(), source.last.term.value(), source.id.value());
  if (plan.committed < source.last.index) {
    out += fmt::format(
        "  Of that, the survivors do not know whether entries {} to {} were committed. They are\n"
        "  in the recovered group: a write that was answered with UNKNOWNOUTCOME, or not at all,\n"
        "  may be executed.\n",
        plan.committed.value() + 1, source.last.index.value());
  }
  out += fmt::format(
      "\nWhat has to be true:\n"
      "  Nodes {} are lost for good.\n"
      "  They must never start again with the directories that they had: together they are able\n"
      "  to go on as the old group, beside the new one. One that reaches a node of the new group\n"
      "  is refused, and stops.\n",
      nodes_text(plan.lost));
  out += fmt::format(
      "\nThe recovered group:\n"
      "  Its log begins behind entry {}; revisions and fencing tokens rise by as\n"
      "  much, and rise on. It has a cluster id of its own, and the survivors' directories are\n"
      "  retired.\n",
      plan.base.value());
  return out;
}

}  // namespace leasehold::cli
