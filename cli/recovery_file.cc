#include <leasehold/cli/recovery_file.h>
#include <leasehold/kv/key_slot.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace leasehold::cli {
namespace {

using Json = nlohmann::json;

constexpr const char* kReportFormat = "leasehold_recovery_report";
constexpr const char* kPlanFormat = "leasehold_recovery_plan";
constexpr int kRecoveryFormat = 1;
constexpr int kHostRecoveryFormat = 2;
/// Of one cluster; a node has a number below 10,000.
constexpr std::size_t kHostReportsMax = 10000;
constexpr std::size_t kRecoveredGroupsMax = kv::kSlots;
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

Json json_of(const node::HostSurvivor& host) {
  Json out{{"cluster", hex_text(host.cluster_id)},
           {"node", host.id.value()},
           {"uuid", hex_text(host.uuid.high) + hex_text(host.uuid.low)},
           {"groups", Json::array()}};
  for (const node::GroupSurvivor& one : host.groups) {
    Json group = json_of(one.survivor);
    group["group"] = one.group.value();
    out["groups"].push_back(std::move(group));
  }
  return out;
}

/// None: it is no report.
std::optional<node::HostSurvivor> host_of(const Json& json) {
  Fields in(json);
  node::HostSurvivor out;
  out.cluster_id = in.hex(in.text("cluster"));
  out.id = raft::NodeId(in.number("node"));
  const std::string uuid = in.text("uuid");
  if (uuid.size() != 32) return std::nullopt;
  out.uuid = {in.hex(uuid.substr(0, 16)), in.hex(uuid.substr(16))};
  const auto groups = json.find("groups");
  if (!in.ok() || out.id == raft::kNobody || out.cluster_id == 0 || groups == json.end() ||
      !groups->is_array() || groups->empty() || groups->size() > kRecoveredGroupsMax) {
    return std::nullopt;
  }
  for (const Json& each : *groups) {
    Fields one(each);
    const raft::GroupId group(one.number("group"));
    auto survivor = survivor_of(each);
    if (!one.ok() || !survivor || group.value() == 0) return std::nullopt;
    if (survivor->cluster_id != out.cluster_id || survivor->uuid != out.uuid) return std::nullopt;
    if (!out.groups.empty() && group <= out.groups.back().group) return std::nullopt;
    out.groups.push_back({group, *std::move(survivor)});
  }
  return out;
}

/// What stands beside the hosts in a plan. False: it is none.
bool take_scope(const Json& json, HostReports& out) {
  Fields in(json);
  out.all = in.number("all");
  const auto only = json.find("only");
  if (!in.ok() || out.all > kRecoveredGroupsMax || only == json.end() || !only->is_array()) {
    return false;
  }
  for (const Json& each : *only) {
    if (!each.is_number_unsigned() || each.get<std::uint64_t>() > out.all) return false;
    out.only.emplace_back(each.get<std::uint64_t>());
  }
  return out.all > 0 && std::is_sorted(out.only.begin(), out.only.end());
}

Error no_report(std::string why) {
  return {ErrorCode::invalid_argument,
          std::move(why) + ": give the files that leasehold recover look or plan wrote"};
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

// ---- Nodes with many groups ----

node::RecoveryScope scope_of(const HostReports& reports) {
  node::RecoveryScope scope;
  for (std::size_t group = 1; group <= reports.all; ++group) scope.all.emplace_back(group);
  scope.only = reports.only;
  return scope;
}

bool is_of_hosts(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  return json.is_object() && (json.value(kReportFormat, Json()) == kHostRecoveryFormat ||
                              json.value(kPlanFormat, Json()) == kHostRecoveryFormat);
}

std::string encode_report(const node::HostSurvivor& host) {
  Json out = json_of(host);
  out[kReportFormat] = kHostRecoveryFormat;
  return out.dump(2) + "\n";
}

std::string encode_plan(const HostReports& reports) {
  Json out{{kPlanFormat, kHostRecoveryFormat},
           {"all", reports.all},
           {"only", Json::array()},
           {"hosts", Json::array()}};
  for (const raft::GroupId group : reports.only) out["only"].push_back(group.value());
  for (const node::HostSurvivor& host : reports.hosts) out["hosts"].push_back(json_of(host));
  return out.dump(2) + "\n";
}

Result<HostReports> decode_host_reports(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!is_of_hosts(text)) return no_report("it is no report of a node with many groups");
  HostReports out;
  if (!json.contains(kPlanFormat)) {
    auto one = host_of(json);
    if (!one) return no_report("the report is damaged");
    out.hosts.push_back(*std::move(one));
    return out;
  }
  const auto all = json.find("hosts");
  if (all == json.end() || !all->is_array() || all->empty() || all->size() > kHostReportsMax ||
      !take_scope(json, out)) {
    return no_report("the plan is damaged");
  }
  for (const Json& each : *all) {
    auto one = host_of(each);
    if (!one) return no_report("the plan is damaged");
    out.hosts.push_back(*std::move(one));
  }
  return out;
}

}  // namespace leasehold::cli
