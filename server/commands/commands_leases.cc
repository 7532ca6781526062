// LEASE.*: the leases that clients hold (docs/leases.md).
#include <leasehold/kv/local/lease_renewal.h>
#include <leasehold/server/commands/commands.h>
#include <leasehold/server/front/acting.h>
#include <leasehold/server/front/lease_word.h>
#include <leasehold/server/front/people_time.h>
#include <leasehold/server/front/words.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace leasehold::server {
namespace {

constexpr const char* kGrantForm =
    "ERR expected LEASE.GRANT milliseconds [ID id] [NAME name] [HOLDER holder] "
    "[GRACE milliseconds] [SOFT] [DELAY milliseconds]";
constexpr const char* kListForm = "ERR expected LEASE.LIST [AFTER id] [COUNT count]";

std::optional<std::uint64_t> parse_number(std::string_view word, std::int64_t least) {
  const auto number = parse_integer(word);
  if (!number || *number < least) return std::nullopt;
  return static_cast<std::uint64_t>(*number);
}

std::string no_id(std::string_view word) {
  return fmt::format("ERR {} is not the id of a lease", quoted(word));
}

/// Whole milliseconds. None: not a number above 0, or more than the type holds.
std::optional<lease::Duration> parse_milliseconds(std::string_view word) {
  const auto number = parse_number(word, 1);
  constexpr auto kMost = std::numeric_limits<lease::Duration::rep>::max() / 1'000'000;
  if (!number || *number > static_cast<std::uint64_t>(kMost)) return std::nullopt;
  return std::chrono::milliseconds(*number);
}

/// What is more than any term may be stays so: the store says what the limit is.
bool parse_term(std::string_view word, grant::LeaseTerms::Milliseconds& term) {
  const auto number = parse_number(word, 0);
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  if (number) {
    term = grant::LeaseTerms::Milliseconds(static_cast<std::uint32_t>(std::min(*number, kMost)));
  }
  return number.has_value();
}

/// Whether the session's user may not renew one of them, as far as this node knows: then the log
/// decides.
bool others_are_among(const Session& session, const std::vector<kv::LeaseRef>& leases) {
  const auto& rights = session.user().rights;
  if (!rights || rights->may_touch_leases_of_others()) return false;
  return std::any_of(leases.begin(), leases.end(), [&](const kv::LeaseRef& lease) {
    const auto found = session.group().store.lease_terms(lease.id, lease.name);
    if (!found || !found.value()) return false;
    const auto& held = *found.value();
    const std::uint64_t created = session.at_home() ? rights->created() : 0;
    return !held.owner.empty() &&
           !kv::is_of_user(held, owner_in(*rights, session.at_home()), created);
  });
}

/// Under the leader lease. False: the log has to be asked.
bool renew_here(Session& session, const Arguments& args, const std::vector<kv::LeaseRef>& leases,
                std::string& out) {
  const ServedGroup& group = session.group();
  kv::LeaseKeeper* const keeper = group.lease_keeper;
  if (keeper == nullptr || !session.context().state.options.lease_reads) return false;
  if (others_are_among(session, leases)) return false;
  const SlotStay stay(group, group.stay(), session.context().state.commands, *find_command(args),
                      args);
  const auto renewed = kv::renew_under_lease(group.group, *keeper, group.store, leases);
  if (!renewed || !stay.stayed()) return false;
  append_array(out, leases.size());
  for (const auto& ttl : renewed->ttl) {
    if (ttl) {
      append_integer(out, *ttl / std::chrono::milliseconds(1));
    } else {
      append_null(out, session.protocol);
    }
  }
  return true;
}

std::string parse_renewed(const Arguments& args, std::vector<kv::LeaseRef>& leases) {
  for (std::size_t i = 1; i < args.size(); ++i) {
    std::string problem = parse_lease(args[i], leases.emplace_back());
    if (!problem.empty()) return problem;
  }
  return {};
}

/// If every lease is given by its id, the command has only ids: every build knows that form.
kv::Operation renewal_of(std::vector<kv::LeaseRef> leases) {
  kv::RenewLeases renew;
  for (const kv::LeaseRef& lease : leases) {
    if (!lease.name.empty()) return kv::RenewNamed{std::move(leases)};
    renew.ids.push_back(lease.id);
  }
  return renew;
}

}  // namespace

std::string make_lease_grant(const Arguments& args, kv::Operation& operation) {
  kv::GrantLease grant;
  const auto ttl = parse_milliseconds(args[1]);
  if (!ttl) return kGrantForm;
  grant.ttl = *ttl;
  grant.asked_at_ms = wall_now() / std::chrono::milliseconds(1);
  for (std::size_t i = 2; i < args.size(); ++i) {
    const std::string_view word = args[i];
    if (equals_ignoring_case(word, "soft")) {
      grant.terms.soft = true;
      continue;
    }
    if (++i == args.size()) return kGrantForm;
    const std::string_view value = args[i];
    if (equals_ignoring_case(word, "id")) {
      const auto id = parse_number(value, 1);
      if (!id) return no_id(value);
      grant.id = grant::LeaseId(*id);
    } else if (equals_ignoring_case(word, "name")) {
      grant.name = value;
    } else if (equals_ignoring_case(word, "holder")) {
      grant.holder = value;
    } else if (equals_ignoring_case(word, "grace")) {
      if (!parse_term(value, grant.terms.grace)) return kGrantForm;
    } else if (equals_ignoring_case(word, "delay")) {
      if (!parse_term(value, grant.terms.delay)) return kGrantForm;
    } else {
      return kGrantForm;
    }
  }
  operation = grant;
  return {};
}

std::string make_lease_renew(const Arguments& args, kv::Operation& operation) {
  std::vector<kv::LeaseRef> leases;
  std::string problem = parse_renewed(args, leases);
  if (problem.empty()) operation = renewal_of(std::move(leases));
  return problem;
}

std::string make_lease_revoke(const Arguments& args, kv::Operation& operation) {
  kv::LeaseRef lease;
  std::string problem = parse_lease(args[1], lease);
  if (problem.empty()) operation = about(lease, kv::RevokeLease{}, &kv::RevokeLease::id);
  return problem;
}

std::string make_lease_attach(const Arguments& args, kv::Operation& operation) {
  kv::LeaseRef lease;
  std::string problem = parse_lease(args[1], lease);
  const kv::AttachKey attach{grant::LeaseId(0), args[2]};
  if (problem.empty()) operation = about(lease, attach, &kv::AttachKey::lease);
  return problem;
}

std::string make_lease_detach(const Arguments& args, kv::Operation& operation) {
  operation = kv::AttachKey{grant::LeaseId(0), args[1]};
  return {};
}

std::string make_lease_info(const Arguments& args, kv::Operation& operation) {
  if (args.size() == 3 && equals_ignoring_case(args[1], "name") && !args[2].empty()) {
    operation = kv::LeaseInfo{grant::LeaseId(0), args[2]};
    return {};
  }
  if (args.size() != 2) return "ERR expected LEASE.INFO lease or LEASE.INFO NAME name";
  kv::LeaseRef lease;
  std::string problem = parse_lease(args[1], lease);
  operation = kv::LeaseInfo{lease.id, lease.name};
  return problem;
}

std::string make_lease_list(const Arguments& args, kv::Operation& operation) {
  kv::LeaseList list{grant::LeaseId(0), 100};
  if (args.size() % 2 == 0) return kListForm;
  for (std::size_t i = 1; i < args.size(); i += 2) {
    const bool count = equals_ignoring_case(args[i], "count");
    if (!count && !equals_ignoring_case(args[i], "after")) return kListForm;
    const auto number = parse_number(args[i + 1], count ? 1 : 0);
    if (!number || (count && *number > kv::kCommandLeasesMax)) return kListForm;
    if (count) {
      list.count = static_cast<std::uint32_t>(*number);
    } else {
      list.after = grant::LeaseId(*number);
    }
  }
  operation = list;
  return {};
}

void run_lease_renew(Session& session, const Arguments& args, std::string& out) {
  std::vector<kv::LeaseRef> leases;
  if (const std::string problem = parse_renewed(args, leases); !problem.empty()) {
    return session.refuse(out, problem);
  }
  kv::Operation operation = renewal_of(leases);
  auto encoded =
      std::visit([](auto& o) { return kv::encode_command(kv::Command(std::move(o))); }, operation);
  if (!encoded) return session.refuse(out, "ERR " + encoded.error().message);
  if (session.refuse_distrusted(out)) return;
  if (renew_here(session, args, leases, out)) return;
  if (session.refuse_when_draining(out)) return;
  // It may be repeated: the second time gives a lease its whole time once more.
  session.propose(std::move(encoded).value(), ReplyForm::plain, {}, true);
}

}  // namespace leasehold::server
